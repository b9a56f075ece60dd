import { mount } from "svelte";
import "uplot/dist/uPlot.min.css";
import "./page.css";
import App from "./App.svelte";

const data = JSON.parse(document.getElementById("data").textContent);
mount(App, { target: document.getElementById("app"), props: { data: data ?? { title: "", files: [] } } });
