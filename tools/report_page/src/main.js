import { mount } from "svelte";
import "uplot/dist/uPlot.min.css";
import "./page.css";
import App from "./App.svelte";

const data = JSON.parse(document.getElementById("data").textContent);
// On paper nothing can be unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((folded) => (folded.open = true)));
mount(App, { target: document.getElementById("app"), props: { data: data ?? { title: "", files: [] } } });
