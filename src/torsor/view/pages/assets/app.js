// The page: reads its data, makes the scene and the panel, and plays.

const THEMES = {
    light: {
        sky: [0.62, 0.66, 0.72], earth: [0.36, 0.34, 0.33], floor: [1, 1, 1, 0.55], shadow: [0.1, 0.13, 0.2, 0.2],
        lines: [[0.45, 0.5, 0.58, 0.28], [0.35, 0.4, 0.5, 0.5]], ink: "#1c2430", halo: "rgba(255,255,255,0.85)",
        faint: "#6a7482", rule: "#c8ced6", grid: "#e9edf1", alarm: "#c8342c",
    },
    dark: {
        sky: [0.5, 0.54, 0.62], earth: [0.22, 0.22, 0.24], floor: [0.16, 0.19, 0.24, 0.55], shadow: [0, 0, 0, 0.45],
        lines: [[0.55, 0.62, 0.72, 0.16], [0.6, 0.68, 0.8, 0.3]], ink: "#e6eaf0", halo: "rgba(16,20,26,0.85)",
        faint: "#929cab", rule: "#3a4450", grid: "#262e38", alarm: "#ff6b5e",
    },
};
const COLORS = [
    [0.16, 0.44, 0.75], [0.85, 0.42, 0.1], [0.2, 0.58, 0.3], [0.62, 0.28, 0.65], [0.75, 0.2, 0.28], [0.35, 0.38, 0.42],
];
const NO_WEBGL =
    "This page needs WebGL for its 3D picture. WebGL is missing in this browser, or switched off. " +
    "Another browser, or hardware acceleration in its settings, helps.";
const SLOW = 0.045; // seconds between two pictures
const ROUGH = 0.7; // quality that a motion begins with without a GPU
const HURRY = 250; // milliseconds between two changes of a picture that moves
const READ = 100; // milliseconds between two updates of the numbers: what changes faster cannot be read

class App {
    constructor(data) {
        this.data = data;
        const kind = (each) => (each.low ? Batch : each.times ? Motion : Posed);
        this.actors = data.actors.map((each) => new (kind(each))(each, data.robots[each.robot]));
        const several = data.actors.filter((each) => !each.reference).length > 1;
        this.actors.forEach((actor, k) => {
            actor.color = COLORS[k % COLORS.length];
            actor.tint = [...actor.color, actor.isReference ? 1 : several ? 0.6 : 0];
        });
        const any = (test) => this.actors.some(test), moves = any((each) => each instanceof Motion);
        const alone = (test) => any((each) => !each.instances && test(each)), one = alone(() => true);
        this.has = {
            bodies: true, grid: true, links: one, com: alone((each) => each.robot.mass > 0), names: one,
            frames: alone((each) => each.robot.frames.length),
            inertia: data.robots.some((each) => each.shown.some((one) => one.kind === "inertia")),
            trails: moves && any((each) => each.robot.trails.length), reactions: any((each) => each.content.reactions),
            moments: any((each) => each.content.reactions || each.content.external),
            ground: any((each) => each.content.ground), external: any((each) => each.content.external), follow: moves,
            markers: any((each) => each.content.markers),
        };
        this.layers = { bodies: true, grid: true, ground: true, external: true, markers: true, ...data.layers };
        this.duration = Math.max(...this.actors.map((each) => each.duration), 0);
        Object.assign(this, { time: data.start || 0, rounds: 0, playing: false, speed: 1, loop: true, frames: 0, quality: 1, wanted: -HURRY, read: 0 });
        Object.assign(this, { chosen: this.actors[0], apart: data.apart });
        this.byId = (id) => document.getElementById(id);
        this.stage = new Stage(this.byId("view"), this.byId("labels"), data, this.actors, this.layers, () => this.changed());
        this.separate(this.apart);
        this.dark = matchMedia("(prefers-color-scheme: dark)");
        this.dark.addEventListener("change", () => this.changed());
        this.panel = new Panel(this.byId("panel"), this);
        this.controls();
        this.stage.camera.listen(this.byId("view"), () => this.changed());
        this.changed();
    }

    get theme() {
        const chosen = document.documentElement.dataset.theme || (this.dark && this.dark.matches ? "dark" : "light");
        return THEMES[chosen];
    }

    controls() {
        const { byId } = this, bar = byId("transport");
        bar.hidden = !this.duration;
        byId("scrub").max = this.duration;
        byId("play").addEventListener("click", () => (this.playing ? this.pause() : this.play()));
        byId("scrub").addEventListener("input", (event) => {
            this.pause();
            this.seek(+event.target.value);
        });
        byId("speed").addEventListener("change", (event) => (this.speed = +event.target.value));
        byId("loop").addEventListener("change", (event) => (this.loop = event.target.checked));
        byId("home").addEventListener("click", () => {
            this.stage.camera.reset();
            this.changed();
        });
        byId("theme").addEventListener("click", () => {
            document.documentElement.dataset.theme = this.theme === THEMES.dark ? "light" : "dark";
            this.changed();
        });
        byId("fold").addEventListener("click", () => {
            document.body.classList.toggle("folded");
            this.changed();
        });
        addEventListener("keydown", (event) => this.key(event));
        addEventListener("click", (event) => {
            if (event.detail) setTimeout(() => this.release()); // with the mouse; the focus of labels follows the click
        });
    }

    /** Take the focus from a check box or button, so that keys control the motion; sliders and lists keep it. */
    release() {
        const { activeElement } = document;
        if (activeElement.matches("input[type=checkbox], button, summary")) activeElement.blur();
    }

    key(event) {
        if (event.target.closest && event.target.closest("input, select, button, summary")) return;
        const step = this.duration / 100;
        if (event.key === " ") this.playing ? this.pause() : this.play();
        else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
            this.pause();
            this.seek(clamp(this.time + (event.key === "ArrowRight" ? step : -step), 0, this.duration));
        } else return;
        event.preventDefault();
    }

    /** Place the actors beside each other, by a multiple of the size of the scene. */
    separate(apart) {
        const way = this.stage.camera.basis[1];
        this.apart = apart;
        this.actors.forEach((actor, k) => {
            actor.offset = scaled(way, apart * this.data.unit * (k - (this.actors.length - 1) / 2));
        });
        this.seek(this.time, this.rounds);
    }

    choose(k) {
        this.chosen = this.actors[k];
        this.panel.choose(this.chosen);
        this.changed();
    }

    /** Go to a time (s), after so many rounds of a loop, in which walks have gone on. */
    seek(time, rounds = 0) {
        Object.assign(this, { time, rounds });
        this.actors.forEach((each) => each.show(each.content.ahead ? time + rounds * this.duration : time));
        this.changed();
    }

    play() {
        if (!this.duration || this.playing) return;
        if (!this.loop && this.time >= this.duration) this.seek(0);
        this.playing = true;
        this.last = null;
        this.pace = SLOW / 2;
        this.quality = this.stage.renderer.software ? ROUGH : 1;
        this.changed();
    }

    pause() {
        this.playing = false;
        this.changed();
    }

    /** Ask for a new picture: at most one for each refresh of the screen. After several in a hurry, a fine one follows. */
    changed() {
        const now = performance.now();
        this.hurried = now - this.wanted < HURRY;
        this.wanted = now;
        clearTimeout(this.rest);
        if (this.hurried && !this.playing) this.rest = setTimeout(() => this.changed(), HURRY);
        if (!this.asked && this.stage) {
            this.asked = true;
            requestAnimationFrame((now) => this.tick(now));
        }
    }

    tick(now) {
        this.asked = false;
        if (this.playing) {
            const passed = this.last === null ? 0 : (now - this.last) / 1000;
            this.last = now;
            this.adapt(passed);
            let time = this.time + this.speed * passed, { rounds } = this;
            if (time > this.duration) {
                if (this.loop) [time, rounds] = [time % this.duration, rounds + Math.floor(time / this.duration)];
                else [time, this.playing] = [this.duration, false];
            }
            this.seek(time, rounds);
        }
        this.render();
        if (this.playing) this.changed();
    }

    /** While a slow machine plays, draw fewer pixels: a coarse motion is better than one that stutters. */
    adapt(passed) {
        this.pace = mix(this.pace, passed || this.pace, 0.2);
        if (this.pace > SLOW) {
            this.quality = Math.max(LOW, 0.8 * this.quality);
            this.pace = SLOW / 2;
        }
    }

    render() {
        if (!this.panel) return;
        this.frames++;
        const { software } = this.stage.renderer, rough = software && this.hurried;
        this.stage.quality = this.playing ? this.quality : rough ? ROUGH : software ? FINE : 1;
        this.stage.draw(this.theme);
        const now = performance.now(), read = !(this.playing || rough) || now - this.read > READ;
        if (read) {
            this.read = now;
            this.panel.update();
        }
        if (read || !software) this.transport();
    }

    transport() {
        const { byId } = this;
        byId("scrub").value = this.time;
        say(byId("clock"), `${this.time.toFixed(2)} / ${this.duration.toFixed(2)} s`);
        say(byId("play"), this.playing ? "\u275a\u275a" : "\u25b6");
        byId("play").setAttribute("aria-label", this.playing ? "Pause" : "Play");
    }

    /** What is shown now, for scripts: the numbers behind the picture. */
    state() {
        const actors = this.actors.map(({ matrices, instances, com, drives, q }) => {
            return { poses: Array.from(instances ? instances.data : matrices), com, drives, q: q ? Array.from(q) : null };
        });
        return { time: this.time, playing: this.playing, frames: this.frames, actors };
    }

    /** The picture as a PNG, as a data URL. */
    image() {
        this.hurried = false;
        this.render();
        return this.stage.canvas.toDataURL();
    }
}

function start() {
    try {
        const app = new App(readData(document));
        globalThis.torsorPage = app;
        globalThis.torsorKinematics = (index, own) => {
            app.actors[index].connect(own);
            app.changed();
        };
        app.stage.canvas.addEventListener("webglcontextlost", (event) => {
            event.preventDefault();
            complain("The GPU was reset. Reload the page to continue.");
        });
    } catch (error) {
        complain(error.message === MISSING ? NO_WEBGL : `The page cannot be shown: ${error.message}`);
    }
}

function complain(text) {
    const box = document.getElementById("failure");
    box.textContent = text;
    box.hidden = false;
}

start();
