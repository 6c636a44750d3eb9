// A renderer for WebGL 1 and 2: lit triangles, plain ones and lines, and shadows on the ground. Without a GPU
// every pixel costs: colours are squares of light (no powers), and nothing is computed for a pixel that a corner can tell.

const LIT = {
    vertex: `
        attribute vec3 place, normal;
        attribute vec4 color;
        attribute mat4 model;
        uniform mat4 camera;
        uniform vec4 tint;
        varying vec3 vAt, vNormal, vBase;
        void main() {
            vec4 at = model * vec4(place, 1.0);
            vAt = at.xyz;
            vNormal = mat3(model[0].xyz, model[1].xyz, model[2].xyz) * normal;
            vec3 base = mix(color.rgb, tint.rgb, tint.a);
            vBase = base * base;
            gl_Position = camera * at;
        }`,
    fragment: `
        precision highp float;
        varying vec3 vAt, vNormal, vBase;
        uniform vec3 eye, sun, up, sky, earth;
        uniform float opacity, flat_;
        void main() {
            vec3 n = normalize(vNormal), toEye = normalize(eye - vAt);
            float side = dot(n, toEye);
            if (side < 0.0) {
                n = -n;
                side = -side;
            }
            vec3 ambient = mix(earth, sky, dot(n, up) * 0.5 + 0.5);
            float rim = 1.0 - side, gloss = max(dot(n, normalize(sun + toEye)), 0.0);
            gloss *= gloss;
            gloss *= gloss;
            gloss *= gloss;
            gloss *= gloss;
            gloss *= gloss;
            vec3 lit = vBase * (ambient + 0.95 * max(dot(n, sun), 0.0) + 0.22 * side);
            lit = mix(lit + 0.12 * gloss + 0.06 * sky * (rim * rim * rim), vBase, flat_);
            gl_FragColor = vec4(sqrt(min(lit, 1.0)) * opacity, opacity);
        }`,
};
const PLAIN = {
    vertex: `
        attribute vec3 place;
        attribute mat4 model;
        uniform mat4 onGround, camera;
        varying vec3 vAt;
        void main() {
            vec4 at = onGround * (model * vec4(place, 1.0));
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
const MISSING = "WebGL is missing";
const ATTRIBUTES = ["place", "normal", "color", "model"]; // by their place; a matrix takes four places

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
        ATTRIBUTES.forEach((name, at) => gl.bindAttribLocation(this.program, at, name));
        gl.linkProgram(this.program);
        if (!gl.getProgramParameter(this.program, gl.LINK_STATUS) && !gl.isContextLost()) {
            throw new Error(`a shader does not compile: ${gl.getProgramInfoLog(this.program)}`);
        }
        this.places = new Map();
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
            const at = ATTRIBUTES.indexOf(name);
            gl.enableVertexAttribArray(at);
            gl.vertexAttribPointer(at, size, type, type === gl.UNSIGNED_BYTE, stride, offset);
        }
    }
}

const contextOf = (canvas, wanted) => canvas.getContext("webgl2", wanted) || canvas.getContext("webgl", wanted);

/** Whether the browser draws without a GPU. */
function isSoftware() {
    const gl = contextOf(document.createElement("canvas"), { antialias: false });
    if (!gl) return false;
    const names = gl.getExtension("WEBGL_debug_renderer_info"), free = gl.getExtension("WEBGL_lose_context");
    const name = gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
    if (free) free.loseContext();
    return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

class Renderer {
    constructor(canvas) {
        this.software = isSoftware();
        // Smooth edges take most of the time of a picture that is drawn without a GPU.
        const gl = contextOf(canvas, { antialias: !this.software, alpha: true, stencil: true, premultipliedAlpha: true });
        if (!gl) throw new Error(MISSING);
        gl.getExtension("OES_element_index_uint"); // part of WebGL 2, and of all known WebGL 1
        const old = gl.getExtension("ANGLE_instanced_arrays"); // of WebGL 1
        if (old) {
            gl.vertexAttribDivisor = old.vertexAttribDivisorANGLE.bind(old);
            gl.drawElementsInstanced = old.drawElementsInstancedANGLE.bind(old);
        }
        this.canvas = canvas;
        this.gl = gl;
        this.lit = new Program(gl, LIT);
        this.plain = new Program(gl, PLAIN);
        this.identity = identity();
        this.calls = 0;
        gl.enable(gl.DEPTH_TEST);
        gl.depthFunc(gl.LEQUAL);
        gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    }

    /** Copy corners to the GPU, with the faces between them (indices), or three for each face. */
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

    /** Draw triangles at one matrix, or once for each of the ``instances`` {buffer, at, count}. */
    triangles(mesh, model, instances = null, first = 0, count = mesh.count) {
        const { gl } = this;
        this.calls++;
        this.place(model, instances);
        if (!mesh.faces) {
            gl.drawArrays(gl.TRIANGLES, first, count);
            return;
        }
        gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.faces);
        if (instances) gl.drawElementsInstanced(gl.TRIANGLES, count, gl.UNSIGNED_INT, 4 * first, instances.count);
        else gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_INT, 4 * first);
    }

    /** Set the matrix of what is drawn next, or those of its instances, which begin at a byte of a buffer. */
    place(model, instances = null) {
        const { gl } = this, start = ATTRIBUTES.indexOf("model");
        if (instances) gl.bindBuffer(gl.ARRAY_BUFFER, instances.buffer);
        for (let k = 0; k < 4; k++) {
            if (instances) {
                gl.enableVertexAttribArray(start + k);
                gl.vertexAttribPointer(start + k, 4, gl.FLOAT, false, 64, instances.at + 16 * k);
                gl.vertexAttribDivisor(start + k, 1);
            } else {
                gl.disableVertexAttribArray(start + k);
                gl.vertexAttrib4fv(start + k, model.subarray(4 * k, 4 * k + 4));
            }
        }
    }

    /** Copy matrices to the GPU, to the buffer of the last picture if there is one. */
    matrices(data, buffer) {
        const { gl } = this, made = buffer || gl.createBuffer();
        gl.bindBuffer(gl.ARRAY_BUFFER, made);
        gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
        return made;
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
        this.calls = 0; // of what is drawn, in this picture
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

    /**
     * Draw lit corners; ``tint`` is a colour and how much of it is mixed in; glass shows its front faces only,
     * an ``outline`` its back faces. ``hidden`` draws only what is behind other surfaces.
     */
    draw(mesh, model = this.identity, look = {}) {
        const { tint = [0, 0, 0, 0], opacity = 1, bright = 0, first = 0, count = mesh.count, hidden = false } = look;
        const { instances = null, outline = false } = look;
        if (!count) return;
        const { gl, lit } = this, glass = opacity < 1;
        lit.use();
        lit.set("tint", tint);
        lit.set("opacity", opacity);
        lit.set("flat_", bright);
        gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer);
        lit.read([["place", 3, gl.FLOAT, 0], ["normal", 3, gl.FLOAT, 12], ["color", 4, gl.UNSIGNED_BYTE, 24]], 4 * FLOATS);
        this.blends(glass);
        if (glass || outline) gl.enable(gl.CULL_FACE);
        gl.cullFace(outline ? gl.FRONT : gl.BACK);
        if (hidden) gl.depthFunc(gl.GREATER);
        this.triangles(mesh, model, instances, first, count);
        gl.depthFunc(gl.LEQUAL);
        gl.disable(gl.CULL_FACE);
    }

    /** Draw the shadows of {mesh, model, instances} on the ground, each point once. */
    shadows(list, onGround, color) {
        const { gl, plain } = this;
        plain.use();
        plain.set("color", color);
        plain.set("reach", this.view.reach);
        plain.set("onGround", onGround);
        gl.enable(gl.STENCIL_TEST);
        gl.stencilFunc(gl.EQUAL, 0, 255);
        gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
        this.blends(true);
        gl.disable(gl.DEPTH_TEST);
        for (const { mesh, model, instances } of list) {
            gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer);
            plain.read([["place", 3, gl.FLOAT, 0]], 4 * FLOATS);
            this.triangles(mesh, model, instances);
        }
        gl.enable(gl.DEPTH_TEST);
        gl.disable(gl.STENCIL_TEST);
    }

    /** Draw places (3 numbers each), triangles or lines, below all else; they fade from the middle of the view outwards. */
    flat(mesh, model, color, reach, lines = false) {
        const { gl, plain } = this;
        plain.use();
        plain.set("onGround", this.identity);
        plain.set("color", color);
        plain.set("reach", reach);
        gl.bindBuffer(gl.ARRAY_BUFFER, mesh.buffer);
        plain.read([["place", 3, gl.FLOAT, 0]], 12);
        this.blends(true);
        gl.disable(gl.DEPTH_TEST);
        this.calls++;
        this.place(model);
        gl.drawArrays(lines ? gl.LINES : gl.TRIANGLES, 0, mesh.length / 3);
        gl.enable(gl.DEPTH_TEST);
    }
}
