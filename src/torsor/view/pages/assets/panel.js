// The panel beside the picture: check boxes, motions, sliders, drives and readouts. Text is set as text, never as HTML.

const LAYERS = {
    bodies: "Bodies",
    grid: "Ground and axes",
    links: "Link frames",
    frames: "Named frames",
    names: "Names",
    com: "Centre of mass",
    inertia: "Inertia ellipsoids",
    trails: "Trails",
    reactions: "Joint forces (blue)",
    moments: "Moments (violet)",
    ground: "Ground forces (green)",
    external: "External forces (red)",
    markers: "Measured markers (blue; orange: model)",
};

const NOISE = 1e-5; // part of a limit, or of the largest force, below which a force is rounding

/** An element with attributes and children; texts become text nodes. */
function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
        else if (name in made && name !== "list") made[name] = value;
        else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
}

/** Set the text of an element, if it is another: what is written is laid out and painted again. */
function say(made, text) {
    if (made.said === text) return;
    made.said = text;
    made.textContent = text;
}

const css = ([red, green, blue]) => `rgb(${[red, green, blue].map((each) => Math.round(255 * each)).join(" ")})`;

class Panel {
    constructor(root, app) {
        this.app = app;
        this.rows = [];
        const section = (title, open, ...children) =>
            element("details", { open }, element("summary", {}, title), element("div", { className: "inside" }, ...children));
        const parts = [];
        if (app.actors.length > 1) parts.push(section("Motions", true, this.motions()));
        parts.push(section("Show", true, this.layers()));
        if (app.actors.some((each) => each instanceof Posed)) {
            this.sliders = element("div");
            parts.push(section("Coordinates", true, this.sliders));
        }
        if (app.data.charts.length) {
            this.chart = new Chart(() => app.changed());
            const options = app.data.charts.map(({ name }) => element("option", { value: name }, name));
            this.charted = element("select", { id: "charted", onchange: () => app.changed() }, ...options);
            this.cycle = element("div", { className: "note" });
            const label = element("label", { className: "line" }, "Coordinate", this.charted);
            parts.push(section("Charts", true, label, this.cycle, this.chart.root));
        }
        this.drives = element("div", { className: "drives" });
        if (app.actors.some((each) => each.content.drives)) {
            const moves = app.actors.some((each) => each instanceof Motion);
            const human = app.actors.every((each) => each.content.person);
            const units = app.actors.flatMap((each) => (each.content.drives ? each.content.drives.units : []));
            const kinds = [["torques", "N m"], ["forces", "N"]].filter(([, unit]) => units.includes(unit)).map(([kind]) => kind);
            const base = !moves && app.actors.some((each) => each.content.drives && each.content.drives.base) ? ", base held" : "";
            const what = human ? "Joint moments" : `${moves ? "Drive" : "Holding"} ${kinds.join(" and ")}${base}`;
            const signs = " and strength limits (flexion, adduction, internal rotation positive)";
            const title = human ? `${what}${signs}` : moves ? `${what} and limits` : what;
            parts.push((this.driveSection = section(title, true, this.drives)));
        }
        this.energy = element("dl", { className: "values" });
        if (app.actors.some((each) => !each.instances)) parts.push(section("Energies", true, this.energy));
        if (app.data.notes.length) parts.push(section("About", app.actors.some((each) => each.instances), ...app.data.notes.map((each) => element("p", {}, each))));
        root.append(...parts);
        this.choose(app.chosen);
    }

    motions() {
        const { app } = this;
        const rows = app.actors.map((actor, k) =>
            element(
                "div",
                { className: "motion" },
                element("input", {
                    type: "checkbox",
                    checked: true,
                    id: `motion${k}`,
                    onchange: (event) => {
                        actor.visible = event.target.checked;
                        app.changed();
                    },
                }),
                Object.assign(element("span", { className: "swatch" }), { style: `background: ${css(actor.color)}` }),
                element(
                    "button",
                    { type: "button", onclick: () => app.choose(k), title: "Show its drives and energies" },
                    actor.content.title,
                ),
            ),
        );
        const slide = element("input", {
            type: "range", id: "apart", min: 0, max: 2, step: 0.01, value: app.apart,
            oninput: (event) => app.separate(+event.target.value),
        });
        this.motionRows = rows;
        return element("div", {}, ...rows, element("label", { className: "line" }, "Distance apart", slide));
    }

    layers() {
        const { app } = this, has = app.has;
        const boxes = Object.keys(LAYERS).filter((name) => has[name]).map((name) =>
            element(
                "label",
                { className: "box" },
                element("input", {
                    type: "checkbox", id: `layer-${name}`, checked: app.layers[name],
                    onchange: (event) => {
                        app.layers[name] = event.target.checked;
                        app.changed();
                    },
                }),
                name === "moments" && has.external ? "Moments (violet, pink)" : LAYERS[name],
            ),
        );
        if (has.follow) {
            const follow = (event) => {
                app.stage.follow = event.target.checked;
                app.changed();
            };
            const box = element("input", { type: "checkbox", id: "follow", checked: app.data.follow, onchange: follow });
            boxes.push(element("label", { className: "box" }, box, "Follow"));
        }
        const extra = [];
        if (has.reactions || has.ground || has.external) {
            const size = (event) => {
                app.stage.arrows = 10 ** +event.target.value;
                app.changed();
            };
            const slide = element("input", { type: "range", id: "arrows", min: -1, max: 1, step: 0.01, value: 0, oninput: size });
            extra.push(element("label", { className: "line" }, "Arrow length", slide));
        }
        return element("div", {}, element("div", { className: "boxes" }, ...boxes), ...extra);
    }

    /** Show the sliders and drives of an actor. */
    choose(actor) {
        this.actor = actor;
        (this.motionRows || []).forEach((row, k) => row.classList.toggle("chosen", this.app.actors[k] === actor));
        if (this.sliders) this.sliders.replaceChildren(...(actor instanceof Posed ? this.slidersOf(actor) : []));
        const names = actor.content.drives ? actor.content.drives.names : [];
        this.rows = names.map((name, k) => {
            const bar = element("i"), value = element("span", { className: "number" });
            const row = element("button", { type: "button", className: "drive", title: name, onclick: () => this.pick(k) },
                element("span", { className: "name" }, name), value, element("span", { className: "bar" }, bar));
            return { row, bar, value };
        });
        if (this.driveSection) this.driveSection.hidden = !names.length;
        this.drives.replaceChildren(...this.rows.map((each) => each.row));
        this.update();
    }

    /** Chart the coordinate of a drive. */
    pick(k) {
        if (!this.charted || !(this.actor instanceof Motion)) return;
        this.charted.value = this.actor.content.drives.charted[k];
        this.app.changed();
    }

    slidersOf(actor) {
        const { app } = this, { sliders, postures, note } = actor.content;
        const rows = sliders.map((slider, k) => {
            const value = element("output", { className: "number" });
            const input = element("input", {
                type: "range", id: `slider${k}`, min: slider.low, max: slider.high, step: "any", value: actor.value(slider),
                title: slider.name,
                oninput: () => {
                    actor.move(slider, +input.value);
                    app.changed();
                },
            });
            const name = element("span", { className: "name", title: slider.name }, slider.name);
            return { slider, input, value, row: element("label", { className: "slider" }, name, value, input) };
        });
        this.inputs = rows;
        const choices = [["start", actor.content.start], ...postures.map((each) => [each.name, each.q])];
        const buttons = choices.map(([name, q], k) => {
            const take = () => {
                actor.take(q);
                app.changed();
            };
            return element("button", { type: "button", className: "posture", onclick: take }, k ? name : "Reset");
        });
        this.refused = element("p", { className: "note alarm" });
        const said = note ? [element("p", { className: "note" }, note)] : [];
        const all = element("div", { className: "sliders" }, ...rows.map((each) => each.row));
        return [...said, all, this.refused, element("div", { className: "postures" }, ...(sliders.length ? buttons : []))];
    }

    update() {
        const { actor, app } = this;
        if (actor instanceof Posed && this.sliders) {
            for (const { slider, input, value } of this.inputs) {
                const now = actor.value(slider), gap = slider.unit === "°" ? "" : " ";
                if (document.activeElement !== input || actor.refused) input.value = now;
                say(value, `${(slider.factor * now).toFixed(1)}${gap}${slider.unit}`);
            }
            say(this.refused, actor.refused);
        }
        const drives = actor.drives, top = Math.max(...drives.map((each) => Math.abs(each.value) || 0), 1e-9);
        this.rows.forEach(({ row, bar, value }, k) => {
            if (!drives[k]) return;
            const { limit, value: force, unit } = drives[k], bounded = Number.isFinite(limit) && limit > 0;
            const whole = bounded ? limit : actor.content.drives.peak || top;
            const part = clamp(force / whole || 0, -1, 1); // also where unknown
            const said = Number.isFinite(force) ? short(force, NOISE * whole) : "unknown";
            bar.style.left = `${(50 + 50 * Math.min(part, 0)).toFixed(1)}%`;
            bar.style.width = `${(50 * Math.abs(part)).toFixed(1)}%`;
            row.classList.toggle("over", bounded && Math.abs(force) > limit * 1.0001);
            row.classList.toggle("free", !bounded);
            const { charted } = actor.content.drives;
            row.classList.toggle("chosen", Boolean(charted && this.charted) && charted[k] === this.charted.value);
            say(value, bounded ? `${said} / ${short(limit)} ${unit}` : `${said} ${unit}`);
        });
        this.readout();
        this.drawChart(app.theme);
    }

    readout() {
        const { actor } = this, { kinetic, potential } = actor.energies, rows = [];
        if (kinetic !== undefined) rows.push(["Kinetic energy", `${short(kinetic)} J`]);
        if (potential !== undefined) rows.push(["Potential energy", `${short(potential)} J`]);
        if (kinetic !== undefined) rows.push(["Total energy", `${short(kinetic + potential)} J`]);
        if (actor.closure !== null) rows.push(["Loop-closure error", short(actor.closure, 0)]);
        const ground = actor.wrenches("ground").reduce((sum, each) => add(sum, each.force), [0, 0, 0]);
        if (actor.content.ground) rows.push(["Ground reaction force", `${short(norm(ground))} N`]);
        const digits = clamp(3 - Math.trunc(Math.log10(actor.robot.size)), 0, 9); // of a robot of some metres, to a millimetre
        const com = subtract(actor.com, actor.offset).map((each) => (each + 0).toFixed(digits).replace(/^-(0\.?0*)$/, "$1"));
        if (actor.robot.mass > 0 && !actor.instances) rows.push(["Centre of mass", `${com.join("  ").replaceAll("-", "\u2212")} m`]);
        if (this.energy.children.length !== 2 * rows.length) {
            this.energy.replaceChildren(...rows.flatMap(([name]) => [element("dt", {}, name), element("dd")]));
        }
        rows.forEach(([, value], k) => say(this.energy.children[2 * k + 1], value));
    }

    drawChart(theme) {
        if (!this.charted) return;
        const { app } = this, shown = app.actors.map((each) => each.visible), { stride } = app.actors[0].content;
        const whole = (each) => Math.abs(each.duration - app.duration) < 1e-6;
        const cycle = stride && app.actors.every((each) => each.content.stride === stride && whole(each));
        say(this.cycle, cycle ? `gait cycle (%) from ${stride} heel strike` : "");
        this.chart.show(`${this.charted.value} ${shown} ${theme.ink}`, () => this.curves(this.charted.value), app.duration, theme, cycle);
        this.chart.point(app.time, app.duration);
    }

    /** The charts of a coordinate with the curves of visible motions, and intervals of stance and without forces. */
    curves(name) {
        const { actors, data } = this.app, { charts, stance } = data.charts.find((each) => each.name === name);
        const gaps = actors.flatMap((each) => (each.visible && each.content.drives && each.content.drives.gaps) || []);
        const curve = (each) => ({ ...each, color: css(actors[each.actor].color) });
        const visible = (each) => each.filter(({ actor }) => actors[actor].visible).map(curve);
        return { charts: charts.map((each) => ({ ...each, curves: visible(each.curves) })), gaps, stances: stance || [] };
    }
}
