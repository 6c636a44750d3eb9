// A renderer for WebGL 1 and 2: lit triangles, a ground with a grid, and shadows on it.

const LIT = {
    vertex: `
        attribute vec3 place, normal;
        attribute vec4 color;
        uniform mat4 model, camera;
        varying vec3 vAt, vNormal;
        varying vec4 vColor;
        void main() {
            vec4 at = model * vec4(place, 1.0);
            vAt = at.xyz;
            vNormal = mat3(model[0].xyz, model[1].xyz, model[2].xyz) * normal;
            vColor = color;
            gl_Position = camera * at;
        }`,
    fragment: `
        precision highp float;
        varying vec3 vAt, vNormal;
        varying vec4 vColor;
        uniform vec3 eye, sun, up, sky, earth;
        uniform vec4 tint;
        uniform float opacity, flat_;
        void main() {
            vec3 n = normalize(vNormal), toEye = normalize(eye - vAt);
            if (dot(n, toEye) < 0.0) n = -n;
            vec3 base = pow(mix(vColor.rgb, tint.rgb, tint.a), vec3(2.2));
            vec3 ambient = mix(earth, sky, dot(n, up) * 0.5 + 0.5);
            float key = max(dot(n, sun), 0.0), side = max(dot(n, toEye), 0.0);
            float gloss = pow(max(dot(n, normalize(sun + toEye)), 0.0), 40.0) * 0.12;
            vec3 lit = base * (ambient + 0.95 * key + 0.22 * side) + gloss + 0.06 * sky * pow(1.0 - side, 3.0);
            lit = mix(lit, base, flat_);
            float alpha = opacity;
            gl_FragColor = vec4(pow(min(lit, 1.0), vec3(1.0 / 2.2)) * alpha, alpha);
        }`,
};
const PLAIN = {
    vertex: `
        attribute vec3 place;
        uniform mat4 model, camera;
        varying vec3 vAt;
        void main() {
            vec4 at = model * vec4(place, 1.0);
            vAt = at.xyz;
            gl_Position = camera * at;
        }`,
    fragment: `
        precision highp float;
        varying vec3 vAt;
        uniform vec3 middle;
        uniform vec4 color;
        uniform float reach;
        void main() {
            float alpha = color.a * (1.0 - smoothstep(0.25, 1.0, distance(vAt, middle) / reach));
            gl_FragColor = vec4(color.rgb * alpha, alpha);
        }`,
};
// The grid is computed for each pixel: p counts cells, w is the width of a pixel in cells along both axes.
const FLOOR = {
    vertex: PLAIN.vertex,
    fragment: `
        precision highp float;
        varying vec3 vAt;
        uniform vec3 middle, eye, up, axis1, axis2;
        uniform vec4 color, thin, thick;
        uniform float reach, cell, pixel;
        float lines(vec2 p, vec2 w) {
            vec2 away = abs(fract(p - 0.5) - 0.5), on = 1.0 - smoothstep(0.2 * w, 1.1 * w, away);
            on *= 1.0 - smoothstep(0.1, 0.4, w);
            return max(on.x, on.y);
        }
        void main() {
            vec3 ray = vAt - eye;
            float far = length(ray), steep = max(abs(dot(ray, up)) / far, 0.02);
            vec2 p = vec2(dot(vAt, axis1), dot(vAt, axis2)) / cell;
            vec2 way = vec2(dot(ray, axis1), dot(ray, axis2));
            way = way * way / max(dot(way, way), 1e-12);
            vec2 w = pixel * far / cell * sqrt(1.0 - way + way / (steep * steep));
            float off = distance(vAt, middle) / reach, fade = 1.0 - smoothstep(0.25, 1.0, off);
            float fine = thin.a * lines(p, w) * (1.0 - smoothstep(0.1, 0.6, off));
            float coarse = thick.a * lines(p / 5.0, w / 5.0) * fade;
            vec4 found = vec4(color.rgb, 1.0) * color.a * fade;
            found = mix(found, vec4(thin.rgb, 1.0), fine);
            gl_FragColor = mix(found, vec4(thick.rgb, 1.0), coarse);
        }`,
};

const MISSING = "WebGL is missing";

class Program {
    constructor(gl, { vertex, fragment }) {
        this.gl = gl;
        this.program = gl.createProgram();
        for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
            const shader = gl.createShader(kind);
            gl.shaderSource(shader, text);
            gl.compileShader(shader);
            gl.attachShader(this.program, shader);
        }
        gl.linkProgram(this.program);
        if (!gl.getProgramParameter(this.program, gl.LINK_STATUS) && !gl.isContextLost()) {
            throw new Error(`a shader does not compile: ${gl.getProgramInfoLog(this.program)}`);
        }
        this.places = new Map();
        this.slots = new Map();
    }

    use() {
        this.gl.useProgram(this.program);
    }

    place(name) {
        if (!this.places.has(name)) this.places.set(name, this.gl.getUniformLocation(this.program, name));
        return this.places.get(name);
    }

    set(name, value) {
        const { gl } = this, at = this.place(name);
        if (typeof value === "number") gl.uniform1f(at, value);
        else if (value.length === 16) gl.uniformMatrix4fv(at, false, value);
        else if (value.length === 4) gl.uniform4fv(at, value);
        else gl.uniform3fv(at, value);
    }

    /** Read attributes [name, numbers, type, offset] from the bound buffer. */
    read(attributes, stride) {
        const { gl } = this;
        for (const [name, size, type, offset] of attributes) {
            if (!this.slots.has(name)) this.slots.set(name, gl.getAttribLocation(this.program, name));
            const at = this.slots.get(name);
            gl.enableVertexAttribArray(at);
            gl.vertexAttribPointer(at, size, type, type === gl.UNSIGNED_BYTE, stride, offset);
        }
    }
}

class Renderer {
    constructor(canvas) {
        const wanted = { antialias: true, alpha: true, stencil: true, premultipliedAlpha: true };
        const gl = canvas.getContext("webgl2", wanted) || canvas.getContext("webgl", wanted);
        if (!gl) throw new Error(MISSING);
        gl.getExtension("OES_element_index_uint"); // part of WebGL 2, and of all known WebGL 1
        this.canvas = canvas;
        this.gl = gl;
        this.lit = new Program(gl, LIT);
        this.plain = new Program(gl, PLAIN);
        this.floor = new Program(gl, FLOOR);
        this.identity = identity();
        gl.enable(gl.DEPTH_TEST);
        gl.depthFunc(gl.LEQUAL);
        gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    }

    /** Put corners on the card, with the faces between them (indices), or three for each face. */
    mesh(data, faces = null) {
        const { gl } = this, count = faces ? faces.length : data.length / FLOATS;
        const mesh = { buffer: gl.createBuffer(), length: data.length, count, faces: null };
        gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer);
        gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
        if (faces) {
            mesh.faces = gl.createBuffer();
            gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.faces);
            gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
        }
        return mesh;
    }

    triangles(mesh, first = 0, count = mesh.count) {
        const { gl } = this;
        if (!mesh.faces) {
            gl.drawArrays(gl.TRIANGLES, first, count);
            return;
        }
        gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.faces);
        gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_INT, 4 * first);
    }

    rewrite(mesh, data) {
        const { gl } = this;
        gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer);
        gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
        mesh.count = data.length / FLOATS;
    }

    /** Begin a picture: ``view`` has eye, camera (matrix), up, sun, middle, reach and the colours of the theme. */
    begin(view) {
        const { gl } = this;
        this.view = view;
        gl.viewport(0, 0, this.canvas.width, this.canvas.height);
        gl.disable(gl.STENCIL_TEST);
        gl.depthMask(true);
        gl.clearColor(0, 0, 0, 0);
        gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
        this.lit.use();
        for (const name of ["eye", "camera", "up", "sun", "sky", "earth"]) this.lit.set(name, view[name]);
        this.plain.use();
        for (const name of ["camera", "middle", "reach"]) this.plain.set(name, view[name]);
        this.blends(false);
    }

    blends(on, writesDepth = !on) {
        const { gl } = this;
        if (on) gl.enable(gl.BLEND);
        else gl.disable(gl.BLEND);
        gl.depthMask(writesDepth);
    }

    /** Draw lit corners; ``tint`` is a colour and how much of it is mixed in; glass shows its front faces only. */
    draw(mesh, model = this.identity, { tint = [0, 0, 0, 0], opacity = 1, bright = 0, first = 0, count = mesh.count } = {}) {
        if (!count) return;
        const { gl, lit } = this, glass = opacity < 1;
        lit.use();
        lit.set("model", model);
        lit.set("tint", tint);
        lit.set("opacity", opacity);
        lit.set("flat_", bright);
        gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer);
        lit.read([["place", 3, gl.FLOAT, 0], ["normal", 3, gl.FLOAT, 12], ["color", 4, gl.UNSIGNED_BYTE, 24]], 4 * FLOATS);
        this.blends(glass);
        if (glass) gl.enable(gl.CULL_FACE);
        this.triangles(mesh, first, count);
        gl.disable(gl.CULL_FACE);
    }

    /** Draw the shadows of [mesh, model] on the ground, each point once. */
    shadows(list, onGround, color) {
        const { gl, plain } = this;
        plain.use();
        plain.set("color", color);
        plain.set("reach", this.view.reach);
        gl.enable(gl.STENCIL_TEST);
        gl.stencilFunc(gl.EQUAL, 0, 255);
        gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
        this.blends(true);
        gl.disable(gl.DEPTH_TEST);
        for (const [mesh, model] of list) {
            plain.set("model", product(onGround, model));
            gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer);
            plain.read([["place", 3, gl.FLOAT, 0]], 4 * FLOATS);
            this.triangles(mesh);
        }
        gl.enable(gl.DEPTH_TEST);
        gl.disable(gl.STENCIL_TEST);
    }

    /** Draw the ground: a square (places of 3 numbers) with a grid of cells along two axes. */
    ground(mesh, { color, thin, thick, axis1, axis2, cell, pixel }) {
        const { gl, floor, view } = this, numbers = { color, thin, thick, axis1, axis2, cell, pixel };
        floor.use();
        floor.set("model", this.identity);
        for (const name of ["camera", "middle", "reach", "eye", "up"]) floor.set(name, view[name]);
        for (const [name, value] of Object.entries(numbers)) floor.set(name, value);
        gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer);
        floor.read([["place", 3, gl.FLOAT, 0]], 12);
        this.blends(true);
        gl.disable(gl.DEPTH_TEST);
        gl.drawArrays(gl.TRIANGLES, 0, mesh.length / 3);
        gl.enable(gl.DEPTH_TEST);
    }
}
