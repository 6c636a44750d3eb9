// What stands in the scene: a motion that is played, or a robot whose coordinates are moved.

class Actor {
    constructor(content, robot) {
        Object.assign(this, { content, robot, visible: true, offset: [0, 0, 0], shift: [0, 0, 0] });
        this.matrices = new Float32Array(16 * (robot.places + 1));
        identity(this.matrices);
    }

    /** Whether other motions should track it. */
    get isReference() {
        return Boolean(this.content.reference);
    }

    /** The start in ``matrices`` of the matrix of a link; -1 is the base. */
    static at(link) {
        return 16 * (link + 1);
    }

    /** A point of a link (-1: of the base) in base axes, beside the other actors. */
    point(link, place) {
        return moved(this.matrices, place, Actor.at(link));
    }

    /** Where the origin of the base is drawn: beside the other actors, and ahead by the rounds of a walk. */
    get origin() {
        return add(this.offset, this.shift);
    }

    place(at = this.offset) {
        for (let k = 0; k < 3; k++) this.matrices[12 + k] = at[k];
    }

    /** Place base, links and flexible links at positions q, with the poses of the links (4 x 4, row by row) from ``start``. */
    stand(poses, start, q, at) {
        const { links, beams } = this.robot;
        this.place(at);
        for (let link = 0; link < links.length; link++) {
            const own = Actor.at(link), first = start + 16 * link;
            for (let k = 0; k < 16; k++) this.matrices[own + k] = poses[first + 4 * (k % 4) + (k >> 2)];
            for (let k = 0; k < 3; k++) this.matrices[own + 12 + k] += at[k];
        }
        for (const beam of beams) placeBeam(beam, q, this.matrices);
    }

    /** Measured markers: none without a recording. */
    get markers() {
        return [];
    }
}

class Motion extends Actor {
    constructor(content, robot) {
        super(content, robot);
        this.times = content.times;
        this.duration = this.times[this.times.length - 1] - this.times[0];
        this.pose = new Float32Array(7);
        this.show(0);
    }

    /** Go to a time after the start (s). A walk goes on in the next round; other motions stand still at their end. */
    show(after) {
        const { times, duration } = this, { ahead } = this.content;
        const rounds = ahead && after > duration ? Math.floor(after / duration) : 0, time = after - rounds * duration;
        this.shift = scaled(ahead || [0, 0, 0], rounds);
        const t = clamp(time + times[0], times[0], times[times.length - 1]);
        let low = 0, high = times.length - 1;
        while (high - low > 1) {
            const middle = (low + high) >> 1;
            if (times[middle] <= t) low = middle;
            else high = middle;
        }
        this.index = low;
        this.next = Math.min(low + 1, times.length - 1);
        this.part = this.next > low ? (t - times[low]) / (times[this.next] - times[low]) : 0;
        this.time = t;
        this.update();
    }

    update() {
        const { poses } = this.content, count = this.robot.places, { origin } = this;
        this.place();
        for (let link = 0; link < count; link++) {
            betweenPoses(poses, 7 * (this.index * count + link), poses, 7 * (this.next * count + link), this.part, this.pose);
            fromPose(this.pose, 0, this.matrices, Actor.at(link));
            for (let k = 0; k < 3; k++) this.matrices[Actor.at(link) + 12 + k] += origin[k];
        }
    }

    /** ``count`` numbers from ``start`` on of a sample (T, width) now, between the samples; NaN where either is. */
    now(array, width, start, count) {
        const out = [];
        for (let k = start; k < start + count; k++) {
            out.push(mix(array[this.index * width + k], array[this.next * width + k], this.part));
        }
        return out;
    }

    get com() {
        return add(this.now(this.content.com, 3, 0, 3), this.origin);
    }

    get energies() {
        const [kinetic, potential] = this.now(this.content.energy, 2, 0, 2);
        return { kinetic, potential };
    }

    get closure() {
        return this.content.closure ? this.now(this.content.closure, 1, 0, 1)[0] : null;
    }

    /** Measured markers now that are seen, in base axes. */
    get markers() {
        const { markers } = this.content;
        if (!markers) return [];
        const count = markers.shape[1];
        const points = Array.from({ length: count }, (_, k) => this.now(markers, 3 * count, 3 * k, 3));
        return points.filter(([x]) => Number.isFinite(x)).map((at) => add(at, this.origin));
    }

    /** Forces of drives now: [{name, unit, limit, value}]. */
    get drives() {
        const { drives } = this.content;
        if (!drives) return [];
        const values = this.now(drives.tau, drives.names.length, 0, drives.names.length);
        return drives.names.map((name, k) => ({ name, unit: drives.units[k], limit: drives.limits[k], value: values[k] }));
    }

    /** Wrenches on links or at points now: [{at, force, moment}] in base axes, of "reactions", "external" or "ground". */
    wrenches(kind) {
        const array = this.content[kind];
        if (!array) return [];
        const count = array.shape[1];
        return Array.from({ length: count }, (_, k) => {
            const numbers = this.now(array, 6 * count, 6 * k, 6), first = numbers.slice(0, 3), last = numbers.slice(3);
            if (kind === "ground") return { at: add(first, this.origin), force: last };
            const { link, place } = this.content[`${kind}At`][k];
            return { at: this.point(link, place), moment: first, force: last };
        }).filter((each) => Number.isFinite(each.at[0] + each.force[0]));
    }

    /** The path of a point of a link: all samples. */
    path({ link, place }) {
        const { poses } = this.content, count = this.robot.places, m = new Float32Array(16);
        return Array.from(this.times, (_, k) => {
            fromPose(poses, 7 * (k * count + link), m, 0);
            return moved(m, place);
        });
    }
}

/** Motions of many robots of one kind, played together; ``instances`` are the matrices of each place of all robots. */
class Batch extends Motion {
    constructor(content, robot) {
        super(content, robot);
        [this.count, this.size] = content.low.shape;
        this.q = new Float64Array(this.count * this.size);
        this.instances = { data: new Float32Array(16 * (robot.places + 1) * this.count), fresh: true };
    }

    connect(own) {
        this.own = own;
        this.update();
    }

    update() {
        if (!this.own) return; // before the functions of the robot are loaded
        const { content, matrices, count, size, q, part, instances } = this, { low, step, turns, offsets } = content;
        const total = count * size, [before, after] = [this.index, this.next].map((each) => each * total);
        for (let k = 0; k < total; k++) q[k] = low[k] + step[k] * mix(content.q[before + k], content.q[after + k], part);
        for (let n = 0; n < count; n++) {
            for (const turn of turns) {
                const at = n * size + turn, length = Math.hypot(q[at], q[at + 1], q[at + 2], q[at + 3]);
                for (let k = 0; k < 4; k++) q[at + k] /= length;
            }
        }
        this.poses = this.own.posesRows(q, this.poses);
        const { origin } = this, width = this.poses.length / count;
        for (let n = 0; n < count; n++) {
            const at = [0, 1, 2].map((k) => origin[k] + offsets[3 * n + k]);
            this.stand(this.poses, n * width, q.subarray(n * size, (n + 1) * size), at);
            for (let k = 0; k < matrices.length; k += 16) {
                const own = k * count + 16 * n;
                for (let i = 0; i < 16; i++) instances.data[own + i] = matrices[k + i];
            }
        }
        instances.fresh = true;
    }

    get energies() {
        return {};
    }
}

class Posed extends Actor {
    constructor(content, robot) {
        super(content, robot);
        this.duration = 0;
        this.q = Float64Array.from(content.start);
        this.vectors = {}; // rotation vectors that sliders set, by the index in q of their quaternion
        this.refused = "";
        this.update();
    }

    /** Take the functions of the robot, once its module is loaded. */
    connect(own) {
        this.own = own;
        this.update();
    }

    /** The rotation vector of the quaternion that begins at an index of q. */
    vector(at) {
        return (this.vectors[at] ||= rotationVector(this.q, at));
    }

    value(slider) {
        return slider.turn === null ? this.q[slider.at] : this.vector(slider.at)[slider.turn];
    }

    /** Move a coordinate to a value; with closed loops the others follow, or it stays where it was. */
    move(slider, value) {
        if (!this.own) return;
        const { content } = this;
        this.refused = "";
        if (content.passive) {
            const amount = value - this.value(slider);
            const found = followed(this.own, this.q, slider.index, amount, content.passive, content.scales);
            if (!found) {
                this.refused = `${slider.name}: the loops cannot be closed there`;
                return;
            }
            this.q = found;
        } else if (slider.turn === null) {
            this.q[slider.at] = value;
        } else {
            const vector = this.vector(slider.at);
            vector[slider.turn] = value;
            this.q.set(quaternionOf(vector), slider.at);
        }
        this.update();
    }

    take(q) {
        this.q = Float64Array.from(q);
        this.vectors = {};
        this.refused = "";
        this.update();
    }

    show() {
        this.update();
    }

    update() {
        if (this.own) {
            this.stand(this.own.poses(this.q), 0, this.q, this.offset);
            return;
        }
        this.place();
        for (let link = 0; link < this.robot.places; link++) {
            const at = Actor.at(link);
            fromPose(this.content.poses, 7 * link, this.matrices, at);
            for (let k = 0; k < 3; k++) this.matrices[at + 12 + k] += this.offset[k];
        }
    }

    get com() {
        if (!(this.robot.mass > 0)) return [...this.offset];
        return add(this.own ? Array.from(this.own.centerOfMass(this.q)) : this.content.com, this.offset);
    }

    get energies() {
        return { potential: this.own ? this.own.potentialEnergy(this.q)[0] : this.content.potential };
    }

    get closure() {
        if (!this.content.passive || !this.own) return null;
        return this.own.closureError(this.q).reduce((most, each) => Math.max(most, Math.abs(each)), 0);
    }

    /** Forces that hold the robot against gravity. */
    get drives() {
        const { drives } = this.content;
        if (!drives || !this.own) return [];
        const values = this.own.gravityForce(this.q), { names, units, limits, at } = drives;
        return names.map((name, k) => ({ name, unit: units[k], limit: limits[k], value: values[at[k]] }));
    }

    wrenches() {
        return [];
    }

    path() {
        return [];
    }
}
