//! Lengths and areas on the ellipsoid, between points that are given by their normals.
//!
//! An edge runs in a plane through the centre of the earth, so it is an arc of an ellipse,
//! not the geodesic. Its length has no closed form: it is integrated along the chord
//! between the two normals, with the service's own rule and number of nodes, because its
//! distances differ from the exact ones in the ninth digit.

use super::globe::{Arc, Vector, difference, dot, normalised, scaled, sum};

/// The service's semi-axes in metres (WGS 84; the polar one is rounded to millimetres).
const EQUATORIAL: f64 = 6_378_137.0;
const POLAR: f64 = 6_356_752.314;

/// Half of a meridian: the distance of antipodal points, by whatever plane.
const HALF_MERIDIAN: f64 = 20_003_931.458_240_643;

/// The length of the sum of two normals below which they are antipodal.
const FACING: f64 = 2e-8;

/// Metres below which two points are the same.
const NOTHING: f64 = 1e-8;

/// Nodes and weights of a Gauss-Legendre rule on -1 to 1; nodes come with both signs.
type Rule = &'static [(f64, f64)];

const ONE: Rule = &[(0.0, 2.0)];
const TWO: Rule = &[(0.577_350_269_189_625_8, 1.0)];
const THREE: Rule = &[(0.0, 8.0 / 9.0), (0.774_596_669_241_483_4, 5.0 / 9.0)];
const SIX: Rule = &[
    (0.238_619_186_083_196_9, 0.467_913_934_572_691),
    (0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (0.932_469_514_203_152, 0.171_324_492_379_170_36),
];

/// Which rule is enough up to which cosine of an arc's angle: 0.05°, 3.5°, 10° and 45°.
const RULES: [(f64, Rule); 4] = [
    (0.999_999_619_228_25, ONE),
    (0.998_134_798_42, TWO),
    (0.984_807_7, THREE),
    (std::f64::consts::FRAC_1_SQRT_2, SIX),
];

/// Integrates a function of the chord's parameter, from 0 to 1.
fn integral(rule: Rule, of: impl Fn(f64) -> f64) -> f64 {
    let at = |&(node, weight): &(f64, f64)| match node {
        0.0 => weight * of(0.5),
        node => weight * (of(0.5 - node / 2.0) + of(0.5 + node / 2.0)),
    };
    rule.iter().map(at).sum::<f64>() / 2.0
}

/// Metres from one point to another.
pub(super) fn distance(from: Vector, to: Vector) -> f64 {
    let (together, apart) = (sum(from, to), difference(to, from));
    if dot(together, together) < FACING * FACING {
        return HALF_MERIDIAN;
    }
    let least = NOTHING / EQUATORIAL;
    if dot(apart, apart) < least * least { 0.0 } else { length(from, to, dot(from, to)) }
}

/// The length of an arc, by its ends and the cosine of its angle.
fn length(from: Vector, to: Vector, cosine: f64) -> f64 {
    match RULES.iter().find(|(least, _)| cosine >= *least) {
        Some((_, rule)) => integral(rule, |along| speed(from, difference(to, from), along)),
        None => {
            let middle = normalised(sum(from, to));
            let half = f64::midpoint(1.0, cosine).sqrt();
            length(from, middle, half) + length(middle, to, half)
        }
    }
}

/// How fast the point on the ellipsoid moves as the normal moves along the chord.
fn speed(from: Vector, chord: Vector, along: f64) -> f64 {
    let stretched = |[x, y, z]: Vector| {
        let (wide, high) = (EQUATORIAL * EQUATORIAL, POLAR * POLAR);
        [x * wide, y * wide, z * high]
    };
    let normal = sum(from, scaled(chord, along));
    let (place, motion) = (stretched(normal), stretched(chord));
    let square = dot(normal, place);
    let moved = difference(motion, scaled(place, dot(place, chord) / square));
    (dot(moved, moved) / square).sqrt()
}

/// Metres from a point to the nearest one of an arc, close to an initial guess.
pub(super) fn distance_to_arc(place: Vector, arc: &Arc, guess: Vector) -> f64 {
    /// Radians on both sides of the guess that the flattening can move the foot by; more
    /// where the arc is nearly as far as it can be.
    const SPREAD: f64 = 0.02;
    /// Each step of the golden-section search leaves this part of the interval.
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    const STEPS: usize = 45;
    let far = |angle: f64| distance(place, arc.onwards(guess, angle));
    let spread = SPREAD / dot(place, guess).abs().max(SPREAD);
    let (back, on) = arc.room(guess);
    let (mut low, mut high) = (-spread.min(back), spread.min(on));
    for _ in 0..STEPS {
        let (left, right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        if far(left) < far(right) { high = right } else { low = left }
    }
    far(low).min(far(high)).min(distance(place, guess))
}

/// Square metres to the left of a ring.
pub(super) fn area(ring: &[Arc]) -> f64 {
    // Areas are measured from a pole, the one that the ring is nearer to.
    let height: f64 = ring.iter().map(|arc| arc.from[2]).sum();
    let pole = if height < 0.0 { -1.0 } else { 1.0 };
    let swept: f64 = ring.iter().map(|arc| swept(arc.from, arc.to, pole, 0)).sum();
    (-swept).rem_euclid(whole_area())
}

pub(super) fn whole_area() -> f64 {
    4.0 * std::f64::consts::PI * zone(1.0)
}

/// The area between a pole and an arc, negative where the arc runs east of it.
fn swept(from: Vector, to: Vector, pole: f64, depth: usize) -> f64 {
    /// The cosine of ten degrees: six nodes are exact to the last digit below that.
    const SHORT: f64 = 0.984_807_7;
    const DEPTH_MAX: usize = 24;
    let chord = difference(to, from);
    let near_axis = |[x, y, z]: Vector| z * pole < 0.0 && x * x + y * y < dot(chord, chord);
    let long = dot(from, to) < SHORT || near_axis(from) || near_axis(to);
    if long && depth < DEPTH_MAX {
        let middle = normalised(sum(from, to));
        return swept(from, middle, pole, depth + 1) + swept(middle, to, pole, depth + 1);
    }
    integral(SIX, |along| {
        let [x, y, z] = sum(from, scaled(chord, along));
        let from_axis = x * x + y * y;
        if from_axis == 0.0 {
            return 0.0;
        }
        let turn = (x * chord[1] - y * chord[0]) / from_axis;
        (zone(z / (from_axis + z * z).sqrt()) - pole * zone(1.0)) * turn
    })
}

/// The area from the equator to a latitude, by its sine and for a radian of longitude.
fn zone(sine: f64) -> f64 {
    let squared = 1.0 - (POLAR / EQUATORIAL).powi(2);
    let eccentricity = squared.sqrt();
    let flat = sine / (1.0 - squared * sine * sine);
    POLAR * POLAR / 2.0 * (flat + (eccentricity * sine).atanh() / eccentricity)
}
