// Returns a typed array with the numbers of an input, and raises an error if it is anything else.
function torsor$numbers(value, name) {
    if (value instanceof ARRAY) return value;
    if (typeof value === "number") return ARRAY.of(value);
    if (value === null || typeof value !== "object" || !Number.isInteger(value.length)) {
        const found = value === null ? "null" : typeof value;
        throw new TypeError(`${name} is of type ${found}; allowed: ARRAY, or an array of numbers`);
    }
    for (let k = 0; k < value.length; k++) {
        if (typeof value[k] !== "number") {
            throw new TypeError(`${name}[${k}] is of type ${typeof value[k]}; allowed: a number`);
        }
    }
    return ARRAY.from(value);
}

function torsor$input(value, length, name) {
    const found = torsor$numbers(value, name);
    if (found.length !== length) throw new RangeError(`${name} has ${found.length} numbers; allowed: ${length}`);
    return found;
}

// Returns the number of states in an input that has one or more of them.
function torsor$count(value, length, name) {
    const count = value.length / length;
    if (Number.isInteger(count)) return count;
    throw new RangeError(`${name} has ${value.length} numbers; allowed: ${length} for each state`);
}

// Returns the common number of states; an input with one state serves all of them.
function torsor$common(counts, name) {
    const several = counts.filter((count) => count !== 1);
    if (several.every((count) => count === several[0])) return several.length > 0 ? several[0] : 1;
    throw new RangeError(`${name}: inputs have ${counts.join(", ")} states; allowed: one number of states, or 1`);
}

function torsor$output(value, length, name) {
    if (!(value instanceof ARRAY)) throw new TypeError(`${name} is of type ${typeof value}; allowed: ARRAY`);
    if (value.length !== length) throw new RangeError(`${name} has ${value.length} numbers; allowed: ${length}`);
}

function torsor$distinct(outputs, name) {
    for (let k = 1; k < outputs.length; k++) {
        if (outputs.indexOf(outputs[k]) < k) throw new RangeError(`${name}: two outputs of out are one array`);
    }
}

// Raises an error if an output lies in the memory of another argument: states that come later would be overwritten.
function torsor$apart(outputs, inputs, names, name) {
    const all = [...outputs, ...inputs];
    for (let k = 0; k < outputs.length; k++) {
        for (let j = k + 1; j < all.length; j++) {
            if (torsor$overlap(all[k], all[j])) {
                const found = `${name}: ${names[k]} and ${names[j]} share memory`;
                throw new RangeError(`${found}; allowed: arrays that do not overlap`);
            }
        }
    }
}

function torsor$overlap(a, b) {
    const ends = [a.byteOffset + a.byteLength, b.byteOffset + b.byteLength];
    return a.buffer === b.buffer && a.byteOffset < ends[1] && b.byteOffset < ends[0];
}

function torsor$object(value, name) {
    if (value === null || typeof value !== "object") {
        throw new TypeError(`${name}: out is ${value === null ? "null" : typeof value}; allowed: an object of arrays`);
    }
}

// V8 copies few numbers faster in a loop, many faster by set.
function torsor$copy(from, to) {
    if (from.length > 64) to.set(from);
    else for (let k = 0; k < from.length; k++) to[k] = from[k];
}
