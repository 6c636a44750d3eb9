// A camera that orbits a point, by mouse, touch and keys.

const WIDE = (32 * Math.PI) / 180; // angle of view, upwards

class Camera {
    /** ``up`` is a unit vector; ``middle`` and ``size`` say what to see, and ``elevation`` (rad) from where. */
    constructor(up, middle, size, elevation = 0.3) {
        const axis = up.findIndex((each) => Math.abs(each) > 0.99);
        // Axes in the order x, y, z also if y is up, so that pictures of planar robots show their plane.
        this.basis = axis < 0 ? [...across(up), up] : [unitAxis((axis + 1) % 3), unitAxis((axis + 2) % 3), up];
        if (axis >= 0 && up[axis] < 0) this.basis[0] = scaled(this.basis[0], -1);
        this.up = up;
        this.home = { middle, size, elevation };
        this.reset();
    }

    reset() {
        const { middle, size, elevation } = this.home;
        Object.assign(this, { target: [...middle], distance: 1.35 * size / Math.tan(WIDE / 2), azimuth: -0.9, elevation });
    }

    get eye() {
        const [x, y, z] = this.basis, flat = Math.cos(this.elevation);
        const way = add(
            add(scaled(x, flat * Math.cos(this.azimuth)), scaled(y, flat * Math.sin(this.azimuth))),
            scaled(z, Math.sin(this.elevation)),
        );
        return add(this.target, scaled(way, this.distance));
    }

    matrix(aspect) {
        const far = Math.max(20 * this.home.size, 4 * this.distance);
        // In a tall window the angle across is the narrow one.
        const angle = aspect < 1 ? 2 * Math.atan(Math.tan(WIDE / 2) / aspect) : WIDE;
        return product(perspective(angle, aspect, far / 5000, far), lookAt(this.eye, this.target, this.up));
    }

    orbit(dx, dy) {
        this.azimuth -= dx;
        this.elevation = clamp(this.elevation + dy, -1.55, 1.55);
    }

    /** Move the target by fractions of the height of the picture. */
    pan(dx, dy) {
        const z = unit(subtract(this.eye, this.target)), x = unit(cross(this.up, z)), y = cross(z, x);
        const step = 2 * this.distance * Math.tan(WIDE / 2);
        this.target = add(this.target, add(scaled(x, -dx * step), scaled(y, dy * step)));
    }

    zoom(factor) {
        this.distance = clamp(this.distance * factor, 0.02 * this.home.size, 60 * this.home.size);
    }

    /** Listen to mouse and touch on an element; ``changed`` is called after each change. */
    listen(element, changed) {
        const pointers = new Map();
        const state = () => {
            const all = [...pointers.values()], n = all.length;
            const x = all.reduce((sum, each) => sum + each.x, 0) / n, y = all.reduce((sum, each) => sum + each.y, 0) / n;
            return { x, y, apart: n > 1 ? Math.hypot(all[0].x - all[1].x, all[0].y - all[1].y) : 0 };
        };
        element.addEventListener("pointerdown", (event) => {
            element.setPointerCapture(event.pointerId);
            pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
        });
        element.addEventListener("pointermove", (event) => {
            if (!pointers.has(event.pointerId)) return;
            const before = state();
            pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
            const after = state(), high = element.clientHeight || 1;
            const dx = (after.x - before.x) / high, dy = (after.y - before.y) / high;
            if (pointers.size > 1 || event.buttons & 6 || event.shiftKey) this.pan(dx, dy);
            else this.orbit(4 * dx, 4 * dy);
            if (before.apart && after.apart) this.zoom(before.apart / after.apart);
            changed();
        });
        for (const name of ["pointerup", "pointercancel"]) {
            element.addEventListener(name, (event) => pointers.delete(event.pointerId));
        }
        const wheel = (event) => {
            event.preventDefault();
            this.zoom(Math.exp(0.0015 * event.deltaY * (event.deltaMode ? 30 : 1)));
            changed();
        };
        element.addEventListener("wheel", wheel, { passive: false });
        element.addEventListener("contextmenu", (event) => event.preventDefault());
        element.addEventListener("dblclick", () => {
            this.reset();
            changed();
        });
    }
}

const unitAxis = (axis) => [0, 1, 2].map((k) => +(k === axis));
