//! Shapes on the globe.
//!
//! Edges are arcs of planes through the centre of the earth, not lines on a map:
//! between two cities of one latitude the edge runs nearer to the pole. So points
//! become directions, and every question is one about which side of a plane a
//! direction is on. The direction is that of the normal: planes through the centre are
//! planes among the normals, too. A ring encloses what lies to its left: one that
//! runs clockwise encloses the rest of the world.

use geo::{Coord, LineString, MultiPolygon, Polygon};

use super::ellipsoid;
use super::shape::{Shape, rings};
use crate::error::QueryError;
use crate::eval::Budget;

/// Sines of angles below this are nothing: about a tenth of a micrometre.
const TINY: f64 = 1e-14;

/// The sine of an angle that is small, but not nothing: about a millimetre.
const NEAR: f64 = 2e-10;

pub(super) type Vector = [f64; 3];

/// The direction of the normal at a point of the ellipsoid.
fn direction(point: Coord) -> Vector {
    let (longitude, latitude) = (point.x.to_radians(), point.y.to_radians());
    let (sin, cos) = latitude.sin_cos();
    [cos * longitude.cos(), cos * longitude.sin(), sin]
}

pub(super) fn dot(a: Vector, b: Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cross([ax, ay, az]: Vector, [bx, by, bz]: Vector) -> Vector {
    [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]
}

pub(super) fn sum([ax, ay, az]: Vector, [bx, by, bz]: Vector) -> Vector {
    [ax + bx, ay + by, az + bz]
}

pub(super) fn difference(a: Vector, b: Vector) -> Vector {
    sum(a, scaled(b, -1.0))
}

pub(super) fn scaled(vector: Vector, factor: f64) -> Vector {
    vector.map(|component| component * factor)
}

pub(super) fn normalised(vector: Vector) -> Vector {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 { scaled(vector, 1.0 / length) } else { vector }
}

/// The shorter arc from one direction to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    pub(super) from: Vector,
    pub(super) to: Vector,
    normal: Vector,
}

impl Arc {
    fn new(from: Vector, to: Vector) -> Arc {
        // Of near ends the difference is exact, where the product of both would not be.
        Arc { from, to, normal: normalised(cross(sum(from, to), difference(to, from))) }
    }

    fn is_point(&self) -> bool {
        dot(self.normal, self.normal) < 0.5
    }

    fn middle(&self) -> Vector {
        normalised(sum(self.from, self.to))
    }

    /// How far a direction in the arc's plane is from its beginning towards its end.
    fn along(&self, direction: Vector) -> f64 {
        dot(cross(self.normal, self.from), direction)
    }

    /// Whether a direction in the arc's plane lies between its ends.
    fn spans(&self, direction: Vector) -> bool {
        self.along(direction) >= -TINY && dot(cross(self.to, self.normal), direction) >= -TINY
    }

    fn holds(&self, direction: Vector) -> bool {
        if self.is_point() {
            let apart = difference(direction, self.from);
            return dot(apart, apart) <= TINY * TINY;
        }
        dot(self.normal, direction).abs() <= TINY && self.spans(direction)
    }

    /// Whether the two cross, each between the ends of the other.
    fn crosses(&self, other: &Arc) -> bool {
        let sides = |arc: &Arc, of: &Arc| {
            let (from, to) = (dot(arc.normal, of.from), dot(arc.normal, of.to));
            from.abs() > TINY && to.abs() > TINY && from * to < 0.0
        };
        if !sides(self, other) || !sides(other, self) {
            return false;
        }
        // The planes meet in a line; both arcs must cross it at the same end.
        let line = cross(self.normal, other.normal);
        let end = |arc: &Arc| dot(line, sum(arc.from, arc.to)) > 0.0;
        end(self) == end(other)
    }

    /// The arc in pieces, cut where it meets one of these corners.
    fn cut_at(&self, corners: &[Vector]) -> Vec<Arc> {
        let mut ends: Vec<Vector> =
            corners.iter().copied().filter(|corner| self.holds(*corner)).collect();
        ends.sort_by(|a, b| self.along(*a).total_cmp(&self.along(*b)));
        ends.push(self.to);
        let mut from = self.from;
        let pieces = ends.into_iter().map(|to| Arc::new(std::mem::replace(&mut from, to), to));
        pieces.filter(|piece| !piece.is_point()).collect()
    }

    fn touches(&self, other: &Arc) -> bool {
        self.crosses(other)
            || self.holds(other.from)
            || self.holds(other.to)
            || other.holds(self.from)
            || other.holds(self.to)
    }

    /// The point of the arc that is nearest to a direction.
    fn nearest(&self, direction: Vector) -> Vector {
        let foot = sum(direction, scaled(self.normal, -dot(self.normal, direction)));
        let foot = normalised(foot);
        if !self.is_point() && self.spans(foot) {
            return foot;
        }
        let nearer = dot(direction, self.from) >= dot(direction, self.to);
        if nearer { self.from } else { self.to }
    }

    /// The angles from a direction of the arc back to its beginning and on to its end.
    pub(super) fn room(&self, direction: Vector) -> (f64, f64) {
        let apart = |a: Vector, b: Vector| {
            let turn = cross(a, b);
            dot(turn, turn).sqrt().atan2(dot(a, b))
        };
        (apart(self.from, direction), apart(direction, self.to))
    }

    /// The direction that is an angle further along the arc than another one of it.
    pub(super) fn onwards(&self, direction: Vector, angle: f64) -> Vector {
        let (sin, cos) = angle.sin_cos();
        sum(scaled(direction, cos), scaled(cross(self.normal, direction), sin))
    }
}

fn arcs(line: &LineString) -> Vec<Arc> {
    line.lines().map(|line| Arc::new(direction(line.start), direction(line.end))).collect()
}

/// The winding number of the ring around a direction, counter-clockwise.
fn windings(ring: &[Arc], around: Vector) -> f64 {
    let turn = |arc: &Arc| {
        let flat = |v: Vector| sum(v, scaled(around, -dot(v, around)));
        let (from, to) = (flat(arc.from), flat(arc.to));
        dot(around, cross(from, to)).atan2(dot(from, to))
    };
    (ring.iter().map(turn).sum::<f64>() / std::f64::consts::TAU).round()
}

/// A ring whose orientation is known.
#[derive(Debug)]
struct Loop {
    arcs: Vec<Arc>,
    clockwise: bool,
}

impl Loop {
    fn new(ring: &LineString) -> Loop {
        let arcs = arcs(ring);
        let middle = normalised(arcs.iter().fold([0.0; 3], |middle, arc| sum(middle, arc.from)));
        let area: f64 = arcs
            .iter()
            .map(|arc| {
                let volume = dot(middle, cross(arc.from, arc.to));
                let spread =
                    1.0 + dot(middle, arc.from) + dot(arc.from, arc.to) + dot(arc.to, middle);
                2.0 * volume.atan2(spread)
            })
            .sum();
        Loop { arcs, clockwise: area < 0.0 }
    }

    fn encloses(&self, direction: Vector) -> bool {
        let windings = windings(&self.arcs, direction);
        if self.clockwise { windings >= 0.0 } else { windings > 0.0 }
    }

    /// Whether it lies in the smaller of the two parts that the ring divides the world
    /// into: what a hole leaves out, whatever its orientation.
    fn cuts_out(&self, direction: Vector) -> bool {
        let windings = windings(&self.arcs, direction);
        if self.clockwise { windings < 0.0 } else { windings > 0.0 }
    }

    fn holds(&self, direction: Vector) -> bool {
        self.arcs.iter().any(|arc| arc.holds(direction))
    }
}

/// A polygon whose rings are prepared once, however often it is tested.
#[derive(Debug)]
struct Region {
    exterior: Loop,
    holes: Vec<Loop>,
}

impl Region {
    fn all(shape: &Shape) -> Vec<Region> {
        let region = |polygon: &Polygon| Region {
            exterior: Loop::new(polygon.exterior()),
            holes: polygon.interiors().iter().map(Loop::new).collect(),
        };
        polygons(shape).into_iter().flatten().map(region).collect()
    }

    /// Whether a direction is on an edge.
    fn bounds(&self, direction: Vector) -> bool {
        self.exterior.holds(direction) || self.holes.iter().any(|hole| hole.holds(direction))
    }

    /// Whether a direction is inside, and not on an edge.
    fn contains(&self, direction: Vector) -> bool {
        !self.bounds(direction)
            && self.exterior.encloses(direction)
            && !self.holes.iter().any(|hole| hole.cuts_out(direction))
    }

    /// A direction inside, next to an edge: on the left, as a ring encloses what is there.
    fn some_inside(&self) -> Option<Vector> {
        let edge = self.exterior.arcs.iter().find(|arc| !arc.is_point())?;
        Some(normalised(sum(edge.middle(), scaled(edge.normal, NEAR))))
    }
}

fn edges(shape: &Shape) -> Vec<Arc> {
    match shape {
        Shape::Point(point) => {
            let direction = direction(*point);
            vec![Arc::new(direction, direction)]
        }
        Shape::Line(line) => arcs(line),
        Shape::Polygons(polygons) => rings(polygons).flat_map(arcs).collect(),
    }
}

fn polygons(shape: &Shape) -> Option<&MultiPolygon> {
    if let Shape::Polygons(polygons) = shape { Some(polygons) } else { None }
}

/// Whether one point of the first lies inside the second, if that is an area.
fn begins_inside(shape: &Shape, area: &Shape) -> bool {
    let first = shape.points().first().copied().map(direction);
    first.is_some_and(|first| Region::all(area).iter().any(|region| region.contains(first)))
}

pub(super) fn intersects(a: &Shape, b: &Shape) -> bool {
    let (edges_a, edges_b) = (edges(a), edges(b));
    edges_a.iter().any(|one| edges_b.iter().any(|other| one.touches(other)))
        || begins_inside(a, b)
        || begins_inside(b, a)
}

/// Whether nothing of `a` lies outside `b`, and not all of it on the edge of an area.
pub(super) fn is_within(budget: &Budget, a: &Shape, b: &Shape) -> Result<bool, QueryError> {
    match (a, b) {
        (Shape::Polygons(_), Shape::Point(_) | Shape::Line(_)) => Ok(false),
        (_, Shape::Point(_) | Shape::Line(_)) => is_along(budget, a, b),
        (Shape::Point(point), Shape::Polygons(_)) => {
            let point = direction(*point);
            Ok(Region::all(b).iter().any(|region| region.contains(point)))
        }
        (Shape::Line(_) | Shape::Polygons(_), Shape::Polygons(_)) => is_in_area(budget, a, b),
    }
}

/// The edges of one shape, cut where they meet corners of another, by their midpoints: such
/// a piece is inside the other, outside or on its edge as a whole, unless edges cross.
/// Charges for comparing each with every edge of the other, too.
fn pieces(budget: &Budget, of: &[Arc], other: &Shape) -> Result<Vec<Vector>, QueryError> {
    let corners: Vec<Vector> = other.points().into_iter().map(direction).collect();
    let mut middles = Vec::new();
    for edge in of {
        let pieces = edge.cut_at(&corners);
        budget.spend_steps(pieces.len().saturating_mul(corners.len()))?;
        middles.extend(pieces.iter().map(Arc::middle));
    }
    Ok(middles)
}

/// Whether a point or a line lies on another.
fn is_along(budget: &Budget, a: &Shape, b: &Shape) -> Result<bool, QueryError> {
    let edges_b = edges(b);
    let mut places = pieces(budget, &edges(a), b)?;
    places.extend(a.points().into_iter().map(direction));
    Ok(places.into_iter().all(|place| edges_b.iter().any(|edge| edge.holds(place))))
}

fn is_in_area(budget: &Budget, a: &Shape, b: &Shape) -> Result<bool, QueryError> {
    let (edges_a, edges_b) = (edges(a), edges(b));
    if edges_a.iter().any(|one| edges_b.iter().any(|other| one.crosses(other))) {
        return Ok(false);
    }
    let (own, area) = (Region::all(a), Region::all(b));
    let inside = |place: Vector| area.iter().any(|region| region.contains(place));
    let on_edge = |place: Vector| area.iter().any(|region| region.bounds(place));
    let places = pieces(budget, &edges_a, b)?;
    if !places.iter().all(|place| inside(*place) || on_edge(*place)) {
        return Ok(false);
    }
    if own.is_empty() {
        return Ok(places.into_iter().any(inside));
    }
    // An edge of the area inside of `a` has the outside on its other side.
    let contained = |place: Vector| own.iter().any(|region| region.contains(place));
    let is_cut = pieces(budget, &edges_b, a)?.into_iter().any(contained);
    Ok(!is_cut && own.iter().all(|own| own.some_inside().is_some_and(inside)))
}

/// In metres; zero where the shapes meet.
pub(super) fn distance(a: &Shape, b: &Shape) -> f64 {
    if let (Shape::Point(a), Shape::Point(b)) = (a, b) {
        return ellipsoid::distance(direction(*a), direction(*b));
    }
    if intersects(a, b) {
        return 0.0;
    }
    let pairs = [nearest_pairs(a, b), nearest_pairs(b, a)];
    let metres = pairs.iter().flatten().map(Near::metres);
    metres.min_by(f64::total_cmp).unwrap_or(0.0)
}

/// A corner of one shape, an edge of another, and a point of the edge that is near.
#[derive(Clone, Copy, Debug)]
struct Near {
    corner: Vector,
    edge: Arc,
    place: Vector,
}

impl Near {
    /// The angle between the two normals, which approximates the distance to a percent.
    fn angle(&self) -> f64 {
        let apart = difference(self.place, self.corner);
        2.0 * (dot(apart, apart).sqrt() / 2.0).min(1.0).asin()
    }

    fn metres(&self) -> f64 {
        ellipsoid::distance_to_arc(self.corner, &self.edge, self.place)
    }
}

/// The corner and the edge that are nearest, and others that may be: where a corner of the
/// shape is nearest by angle, the nearest point of the ellipsoid may be on either edge there.
fn nearest_pairs(corners: &Shape, shape: &Shape) -> Vec<Near> {
    /// Pairs whose angle is larger by more than this are further apart.
    const SLACK: f64 = 1.015;
    /// How much further, in parts of the distance, a pair may be before it is measured well.
    const CLOSE: f64 = 1e-5;
    /// Pairs to measure well, which takes a hundred times as long: both edges at a corner,
    /// of two corners.
    const PAIRS_MAX: usize = 4;
    let edges = edges(shape);
    let corners: Vec<Vector> = corners.points().into_iter().map(direction).collect();
    let near = |corner: Vector, edge: Arc| Near { corner, edge, place: edge.nearest(corner) };
    let pairs = || corners.iter().flat_map(|corner| edges.iter().map(|edge| near(*corner, *edge)));
    let least = pairs().map(|near| near.angle()).fold(f64::INFINITY, f64::min);
    let close = pairs().filter(|near| near.angle() <= least * SLACK);
    let mut nearest: Vec<(f64, Near)> = Vec::new();
    for near in close {
        let metres = ellipsoid::distance(near.corner, near.place);
        let at = nearest.partition_point(|(own, _)| *own <= metres);
        nearest.insert(at, (metres, near));
        nearest.truncate(PAIRS_MAX);
    }
    let most = nearest.first().map_or(0.0, |(metres, _)| metres * (1.0 + CLOSE));
    nearest.retain(|(metres, _)| *metres <= most);
    nearest.into_iter().map(|(_, near)| near).collect()
}

/// In square metres.
pub(super) fn area(polygons: &MultiPolygon) -> f64 {
    let hole = |ring: &LineString| {
        let left = ellipsoid::area(&arcs(ring));
        left.min(ellipsoid::whole_area() - left)
    };
    let own = |polygon: &Polygon| {
        let holes: f64 = polygon.interiors().iter().map(hole).sum();
        ellipsoid::area(&arcs(polygon.exterior())) - holes
    };
    polygons.iter().map(own).sum()
}

/// What is wrong with coordinates in degrees.
pub(super) fn problem(shape: &Shape) -> Option<&'static str> {
    let points = shape.points();
    if !points.iter().all(|point| point.y.abs() <= 90.0) {
        return Some("Latitude values must be between -90 and 90 degrees.");
    }
    let within = points.iter().all(|point| point.x.abs() <= 180.0);
    (!within).then_some("Longitude values must be between -180 and 180 degrees.")
}
