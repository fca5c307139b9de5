//! Spatial functions, on the globe or on a plane, as the container is configured.

mod ellipsoid;
mod globe;
mod shape;

use geo::{Area, Coord, Distance, Euclidean, Geometry, Intersects, Point, Relate};
use model::policy::GeospatialConfig;

use super::{Function, at, only};
use crate::error::QueryError;
use crate::eval::{Ambient, Datum, Evaluated};
use shape::{Problem, Shape};

pub(super) const TABLE: &[Function] = &[
    Function::aware(&["ST_DISTANCE", "_ST_DISTANCE"], (2, 2), |ambient, a| {
        compare(ambient, a, |on, a, b| on.distance(ambient, a, b).map(Datum::number))
    }),
    Function::aware(&["ST_WITHIN", "_ST_WITHIN"], (2, 2), |ambient, a| {
        compare(ambient, a, |on, a, b| on.is_within(ambient, a, b).map(Datum::Bool))
    }),
    Function::aware(&["ST_INTERSECTS", "_ST_INTERSECTS"], (2, 2), |ambient, a| {
        compare(ambient, a, |on, a, b| Ok(Datum::Bool(on.intersects(a, b))))
    }),
    Function::aware(&["ST_AREA"], (1, 1), area),
    Function::aware(&["ST_ISVALID"], (1, 1), is_valid).taking_undefined(),
    Function::aware(&["ST_ISVALIDDETAILED"], (1, 1), is_valid_detailed).taking_undefined(),
];

/// The message for values that are not objects.
const NO_SHAPE: &str = "Unable to process the geometry.";

/// The surface that coordinates refer to.
#[derive(Clone, Copy, Debug)]
enum Surface {
    Globe,
    Plane,
}

impl Surface {
    fn of(ambient: &Ambient) -> Surface {
        match ambient.context.spatial {
            GeospatialConfig::Geography => Surface::Globe,
            GeospatialConfig::Geometry => Surface::Plane,
        }
    }

    fn read(self, value: &Datum<'_>) -> Result<Shape, Problem> {
        let shape = Shape::read(value)?;
        let problem = match self {
            Surface::Globe => globe::problem(&shape),
            Surface::Plane => None,
        };
        problem.map_or(Ok(shape), |problem| Err(Problem::Invalid(problem.to_owned())))
    }

    fn distance(self, ambient: &Ambient, a: &Shape, b: &Shape) -> Result<f64, QueryError> {
        /// The distance from a point to an edge is found by iteration.
        const TRIAL_STEPS: usize = 500;
        match self {
            Surface::Globe => {
                ambient.budget.spend_steps(TRIAL_STEPS)?;
                Ok(globe::distance(a, b))
            }
            Surface::Plane => Ok(Euclidean.distance(&flat(a), &flat(b))),
        }
    }

    /// A shape is within itself, even one whose edges cross.
    fn is_within(self, ambient: &Ambient, a: &Shape, b: &Shape) -> Result<bool, QueryError> {
        if a == b {
            return Ok(true);
        }
        match self {
            Surface::Globe => globe::is_within(&ambient.budget, a, b),
            Surface::Plane => Ok(flat(a).relate(&flat(b)).is_within()),
        }
    }

    fn intersects(self, a: &Shape, b: &Shape) -> bool {
        match self {
            Surface::Globe => globe::intersects(a, b),
            Surface::Plane => flat(a).intersects(&flat(b)),
        }
    }
}

fn flat(shape: &Shape) -> Geometry {
    match shape {
        Shape::Point(point) => Point::from(*point).into(),
        Shape::Line(line) => line.clone().into(),
        Shape::Polygons(polygons) => polygons.clone().into(),
    }
}

/// A function of two shapes; undefined if one of the values is none.
fn compare<'a>(
    ambient: &Ambient,
    arguments: &[Datum<'a>],
    answer: impl Fn(Surface, &Shape, &Shape) -> Evaluated<'a>,
) -> Evaluated<'a> {
    let surface = Surface::of(ambient);
    let (a, b) = (surface.read(at(arguments, 0)), surface.read(at(arguments, 1)));
    let (Ok(a), Ok(b)) = (a, b) else { return Ok(Datum::Undefined) };
    spend(ambient, surface, &a, &b)?;
    answer(surface, &a, &b)
}

/// Every edge may be compared with every other.
fn spend(ambient: &Ambient, surface: Surface, a: &Shape, b: &Shape) -> Result<(), QueryError> {
    let (a, b) = (a.points(), b.points());
    let pairs = a.len().saturating_mul(b.len());
    ambient.budget.spend_steps(pairs.saturating_mul(4))?;
    // On a plane, each shape is also checked for edges of its own that intersect.
    if matches!(surface, Surface::Plane) {
        spend_on_crossings(ambient, &a)?;
        spend_on_crossings(ambient, &b)?;
    }
    Ok(())
}

/// Charges for edges of a line that may intersect, which can be all pairs.
fn spend_on_crossings(ambient: &Ambient, points: &[Coord]) -> Result<(), QueryError> {
    /// Pairs whose boxes are compared in one step.
    const PAIRS_PER_STEP: usize = 8;
    let edges: Vec<(&Coord, &Coord)> = points.iter().zip(points.iter().skip(1)).collect();
    let apart =
        |a: (f64, f64), b: (f64, f64)| a.0.max(a.1) < b.0.min(b.1) || b.0.max(b.1) < a.0.min(a.1);
    for (at, (from, to)) in edges.iter().enumerate() {
        let others = edges.get(at + 1..).unwrap_or_default();
        ambient.budget.spend_steps(1 + others.len() / PAIRS_PER_STEP)?;
        let meet = others.iter().filter(|(start, end)| {
            !apart((from.x, to.x), (start.x, end.x)) && !apart((from.y, to.y), (start.y, end.y))
        });
        ambient.budget.spend_steps(meet.count().saturating_mul(4))?;
    }
    Ok(())
}

/// Points and lines have no area.
fn area<'a>(ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
    let surface = Surface::of(ambient);
    let Ok(shape) = surface.read(only(arguments)) else { return Ok(Datum::Undefined) };
    // An edge on the globe takes up to four microseconds.
    ambient.budget.spend_steps(shape.points().len().saturating_mul(80))?;
    let area = match (surface, &shape) {
        (_, Shape::Point(_) | Shape::Line(_)) => 0.0,
        (Surface::Globe, Shape::Polygons(polygons)) => globe::area(polygons),
        (Surface::Plane, Shape::Polygons(polygons)) => polygons.unsigned_area(),
    };
    Ok(Datum::number(area))
}

fn is_valid<'a>(ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
    Ok(match Surface::of(ambient).read(only(arguments)) {
        Ok(_) => Datum::Bool(true),
        Err(Problem::Invalid(_) | Problem::NoObject) => Datum::Bool(false),
    })
}

fn is_valid_detailed<'a>(ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
    let detail = |valid, reason: Option<String>| {
        let reason = reason.map_or(Datum::Undefined, Datum::string);
        Datum::object([("valid".into(), Datum::Bool(valid)), ("reason".into(), reason)])
    };
    Ok(match Surface::of(ambient).read(only(arguments)) {
        Ok(_) => detail(true, None),
        Err(Problem::Invalid(reason)) => detail(false, Some(reason)),
        Err(Problem::NoObject) => detail(false, Some(NO_SHAPE.to_owned())),
    })
}
