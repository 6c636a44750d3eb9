// The picture: ground, bodies, marks and arrows of all actors.

// The colours of the viewer: joint forces blue and moments violet, ground forces green, external forces red, moments pink.
const FORCE = { reactions: [26, 115, 230, 255], external: [217, 38, 51, 255], ground: [26, 158, 64, 255] };
const MOMENT = { reactions: [140, 64, 204, 255], external: [242, 128, 140, 255] };
const BEHIND = 0.75; // opacity of an arrow where a body hides it
const CENTRE = [240, 190, 40, 255];
const MEASURED = [26, 102, 230, 255], MARKER_RADIUS = 0.012; // of measured markers; radius in m
const SUN = [0.35, 0.3, 0.9]; // where the light comes from: two horizontal axes, up
const LOW = 0.5; // least quality: pixels across for each of the screen, and no shadows
const OUTLINE = 0.004; // distance of the outline of a reference from its surfaces, in sizes of the robot
const FINE = 1.5; // quality at rest of a picture without smooth edges

class Stage {
    /** ``resized`` is called when the canvas has another size on the screen. */
    constructor(canvas, labels, data, actors, layers, resized) {
        Object.assign(this, { canvas, labels, data, actors, layers, arrows: 1, quality: 1 });
        this.renderer = new Renderer(canvas);
        this.camera = new Camera(data.up, data.middle, data.size, data.elevation);
        this.follow = data.follow;
        const meshes = (robot, grow) =>
            surfacesOf(robot, grow).map((each) => ({ ...each, mesh: this.renderer.mesh(each.data, each.faces), data: null }));
        const has = (robot, outline) => actors.some((each) => each.robot === robot && each.isReference === outline);
        this.meshes = data.robots.map((robot) => (has(robot, false) ? meshes(robot, 0) : []));
        this.outlines = data.robots.map((robot) => (has(robot, true) ? meshes(robot, OUTLINE * robot.size) : []));
        [this.strokes, this.arrowStrokes] = [new Strokes(), new Strokes()];
        [this.moving, this.movingArrows] = [1, 2].map(() => this.renderer.mesh(new Float32Array(FLOATS)));
        this.light = unit(this.camera.basis.reduce((sum, axis, k) => add(sum, scaled(axis, SUN[k])), [0, 0, 0]));
        this.trails = new Map();
        this.ground = new Ground(this.renderer, this.camera.basis, data.ground);
        if (data.terrain) this.terrain = this.renderer.mesh(...terrainOf(data.terrain));
        this.fit();
        new ResizeObserver(() => {
            this.fit();
            resized();
        }).observe(canvas);
    }

    /** How many pixels the canvases have on the screen; asking for it in every picture would lay out the page again. */
    fit() {
        this.ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
        this.room = [this.canvas.clientWidth * this.ratio, this.canvas.clientHeight * this.ratio];
    }

    resize() {
        for (const [each, part] of [[this.canvas, this.quality], [this.labels, 1]]) {
            const [width, height] = this.room.map((pixels) => Math.max(1, Math.round(pixels * part)));
            if (each.width !== width || each.height !== height) Object.assign(each, { width, height });
        }
    }

    /** How far the camera has followed the first actor, along the ground. */
    followed() {
        const leader = this.actors.find((each) => each.visible && each instanceof Motion);
        if (!this.follow || !leader) return [0, 0, 0];
        const way = subtract(subtract(leader.com, leader.offset), leader.content.com), { up } = this.data;
        return subtract(way, scaled(up, dot(way, up)));
    }

    draw(theme) {
        this.resize();
        const { renderer, camera, data } = this, shift = this.followed(), home = camera.target;
        camera.target = add(home, shift);
        const { eye } = camera, aspect = this.canvas.width / this.canvas.height;
        this.matrix = camera.matrix(aspect);
        const ground = subtract(camera.target, scaled(data.up, dot(camera.target, data.up) - data.ground));
        const { up } = data, { sky, earth } = theme;
        const reach = Math.max(6 * data.size, 2.2 * camera.distance);
        renderer.begin({ eye, camera: this.matrix, up, sun: this.light, sky, earth, middle: ground, reach });
        const above = dot(eye, up) > data.ground;
        if (this.layers.grid) {
            this.ground.draw(ground, reach, theme, above);
        }
        const bodies = this.bodies();
        if (this.layers.grid && this.terrain) renderer.draw(this.terrain);
        if (this.layers.grid && above && data.shadows !== false && this.quality > (renderer.software ? 1 : LOW)) {
            const flat = shadowOn(up, data.ground, this.light);
            renderer.shadows(bodies.filter((each) => !each.outline), flat, theme.shadow);
        }
        for (const each of bodies.filter((each) => each.opacity === 1)) renderer.draw(each.mesh, each.model, each);
        this.marks();
        const glass = bodies.filter((each) => each.opacity < 1);
        const far = (each) => norm(subtract(moved(each.model, each.middle), eye));
        for (const each of glass.sort((a, b) => far(b) - far(a))) renderer.draw(each.mesh, each.model, each);
        this.wrenches();
        this.names(theme);
        camera.target = home;
    }

    /**
     * Surfaces to draw: [{mesh, model, tint, opacity, outline, bright, instances, middle}]. A reference is an outline: a robot
     * in the same posture hides it except for its edges.
     */
    bodies() {
        const { layers } = this, found = [];
        this.actors.forEach((actor) => {
            if (!actor.visible) return;
            const { instances } = actor, copies = (link) => ({ ...instances, count: actor.count, at: 4 * actor.count * Actor.at(link) });
            if (instances && instances.fresh) {
                instances.buffer = this.renderer.matrices(instances.data, instances.buffer);
                instances.fresh = false;
            }
            const bare = new Set(); // links that are drawn as the ellipsoid of their inertia anyway
            const outline = actor.isReference, { robot } = actor.content;
            for (const each of outline ? this.outlines[robot] : this.meshes[robot]) {
                if (each.kind === "body") bare.add(each.link);
                const on = each.kind === "inertia" ? layers.inertia && !(layers.bodies && bare.has(each.link)) : layers.bodies;
                if (!on || (outline && each.kind === "inertia")) continue;
                const start = Actor.at(each.link), model = actor.matrices.subarray(start, start + 16);
                const inside = layers.inertia && each.kind === "visual" ? 0.35 : each.opacity;
                const look = { tint: actor.tint, instances: instances && copies(each.link) };
                const opacity = outline ? 1 : inside, bright = outline ? 0.6 : 0;
                found.push({ mesh: each.mesh, model, middle: each.middle, opacity, outline, bright, ...look });
            }
        });
        return found;
    }

    /** Axes, centres of mass and trails. */
    marks() {
        const { strokes, layers, data, renderer } = this, thin = 0.006 * data.size;
        strokes.clear();
        const origin = identity();
        const axis = Math.min(0.12 * data.size, 0.5 * data.robots[0].size);
        if (layers.grid) strokes.axes(origin, 0, axis, axis / 30);
        for (const actor of this.actors) {
            if (!actor.visible || actor.instances) continue;
            const length = 0.09 * actor.robot.size, width = 0.006 * actor.robot.size;
            if (layers.links) actor.robot.links.forEach((_, k) => strokes.axes(actor.matrices, Actor.at(k), length, width));
            if (layers.frames) {
                const own = new Float32Array(16);
                for (const { link, pose } of actor.robot.frames) {
                    fromPose(pose, 0, own, 0);
                    const start = Actor.at(link), all = product(actor.matrices.subarray(start, start + 16), own);
                    strokes.axes(all, 0, length, width);
                }
            }
            if (layers.com) {
                strokes.ball(actor.com, 0.022 * actor.robot.size, CENTRE);
                const { up } = data, low = subtract(actor.com, scaled(up, dot(actor.com, up) - data.ground));
                strokes.tube([actor.com, low], 0.0025 * actor.robot.size, CENTRE);
            }
            if (layers.markers) actor.markers.forEach((at) => strokes.ball(at, MARKER_RADIUS, MEASURED, 5, 8));
        }
        renderer.rewrite(this.moving, strokes.data);
        renderer.draw(this.moving, undefined, { bright: 0.25 });
        if (layers.trails) this.drawTrails(thin);
    }

    /**
     * Arrows of forces and moments, drawn last and also through the bodies: most of them act inside a body. Arrows of
     * joint forces of people are half as long and end at the joint, so that they stay apart and above the ground.
     */
    wrenches() {
        const { arrowStrokes: strokes, movingArrows: mesh, layers, data, renderer } = this, thin = 0.006 * data.size;
        strokes.clear();
        for (const actor of this.actors.filter((each) => each.visible)) {
            for (const kind of ["reactions", "external", "ground"].filter((each) => layers[each])) {
                const ends = kind === "reactions" && actor.content.person, scale = (ends ? 0.5 : 1) * this.arrows;
                for (const { at, force, moment } of actor.wrenches(kind)) {
                    const arrow = this.shortened(scaled(force, data.forceScale * scale));
                    strokes.arrow(ends ? subtract(at, arrow) : at, arrow, 1.8 * thin, FORCE[kind]);
                    if (moment && layers.moments) {
                        strokes.arrow(at, this.shortened(scaled(moment, data.momentScale * scale)), thin, MOMENT[kind]);
                    }
                }
            }
        }
        renderer.rewrite(mesh, strokes.data);
        renderer.draw(mesh, undefined, { bright: 0.6, opacity: BEHIND, hidden: true });
        renderer.draw(mesh, undefined, { bright: 0.25 });
    }

    /** An arrow that fits into the picture. */
    shortened(arrow) {
        return scaled(arrow, Math.min(1, (1.5 * this.data.size) / (norm(arrow) || 1)));
    }

    /** Trails have the colour of their motion if there are several. */
    drawTrails(thin) {
        const own = this.actors.length > 1 ? 1 : 0;
        for (const actor of this.actors) {
            if (!actor.visible || !(actor instanceof Motion)) continue;
            if (!this.trails.has(actor)) this.trails.set(actor, actor.robot.trails.map((each) => this.trail(actor, each, thin)));
            const model = identity();
            for (let k = 0; k < 3; k++) model[12 + k] = actor.origin[k];
            for (const { mesh, starts } of this.trails.get(actor)) {
                const [low, high] = [starts[actor.index], starts[actor.next]];
                const count = low + 36 * Math.round(((high - low) / 36) * actor.part);
                this.renderer.draw(mesh, model, { tint: [...actor.color, own], count, bright: 0.35 });
            }
        }
    }

    /** A trail on the GPU, and at which corner each of its samples begins. */
    trail(actor, place, thin) {
        const path = actor.path(place), strokes = new Strokes(), starts = [0];
        const wide = (actor.isReference ? 0.4 : 0.7) * thin; // inside the trail of a motion that follows it
        const color = [...place.color.map((each) => Math.round(255 * each)), 255];
        for (let k = 0; k + 1 < path.length; k++) {
            strokes.tube([path[k], path[k + 1]], wide, color);
            starts.push(strokes.count);
        }
        return { mesh: this.renderer.mesh(strokes.data.slice()), starts };
    }

    /** Where a point is on the labels (pixels), or null behind the camera. */
    onScreen(p) {
        const m = this.matrix, w = m[3] * p[0] + m[7] * p[1] + m[11] * p[2] + m[15], [x, y] = moved(m, p);
        return w > 0 ? [((x / w + 1) / 2) * this.labels.width, ((1 - y / w) / 2) * this.labels.height] : null;
    }

    names(theme) {
        this.labels.style.visibility = this.layers.names ? "visible" : "hidden"; // an empty layer would be laid over the picture
        if (!this.layers.names) return;
        const pen = this.labels.getContext("2d");
        pen.clearRect(0, 0, this.labels.width, this.labels.height);
        pen.font = `${12 * this.ratio}px system-ui, sans-serif`;
        pen.textBaseline = "middle";
        pen.lineWidth = 3 * this.ratio;
        const taken = [];
        for (const actor of this.actors.filter((each) => each.visible && !each.instances)) {
            for (const { link, place, name } of actor.robot.labels) {
                const at = this.onScreen(actor.point(link, place));
                const near = ([x, y]) => Math.abs(x - at[0]) < 90 * this.ratio && Math.abs(y - at[1]) < 13 * this.ratio;
                if (!at || taken.some(near)) continue; // no name over another
                taken.push(at);
                pen.strokeStyle = theme.halo;
                pen.fillStyle = theme.ink;
                pen.strokeText(name, at[0] + 6 * this.ratio, at[1]);
                pen.fillText(name, at[0] + 6 * this.ratio, at[1]);
            }
        }
    }
}
