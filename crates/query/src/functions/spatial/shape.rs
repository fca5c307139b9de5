//! GeoJSON shapes, read from values and checked.

use geo::{Coord, LineString, MultiPolygon, Polygon};

use crate::eval::{Datum, Type};

/// Points that one polygon may have, as in the service.
pub(super) const POINTS_MAX: usize = 4096;

/// A shape whose parts have the right number of points and whose rings close.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Point(Coord),
    Line(LineString),
    Polygons(MultiPolygon),
}

/// Why a value is no shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// Not even an object, so there is no message about it.
    NoObject,
    /// As text for the client.
    Invalid(String),
}

impl Shape {
    pub(super) fn read(value: &Datum<'_>) -> Result<Shape, Problem> {
        if value.type_of() != Type::Object {
            return Err(Problem::NoObject);
        }
        let (kind, coordinates) = (value.get("type"), value.get("coordinates"));
        match kind.as_str().as_deref() {
            Some("Point") => point(&coordinates).map(Shape::Point),
            Some("LineString") => line(&coordinates).map(Shape::Line),
            Some("Polygon") => polygon(&coordinates)
                .map(|polygon| Shape::Polygons(MultiPolygon::new(vec![polygon]))),
            Some("MultiPolygon") => {
                let polygons = list(&coordinates)?.iter().map(polygon).collect::<Result<_, _>>()?;
                Ok(Shape::Polygons(MultiPolygon::new(polygons)))
            }
            _ => Err(invalid(
                "The type of a geometry must be Point, LineString, Polygon or MultiPolygon.",
            )),
        }
    }

    pub(super) fn points(&self) -> Vec<Coord> {
        match self {
            Shape::Point(point) => vec![*point],
            Shape::Line(line) => line.0.clone(),
            Shape::Polygons(polygons) => {
                rings(polygons).flat_map(|ring| ring.0.iter().copied()).collect()
            }
        }
    }
}

/// All rings of all polygons, outer and inner.
pub(super) fn rings(polygons: &MultiPolygon) -> impl Iterator<Item = &LineString> {
    polygons
        .iter()
        .flat_map(|polygon| std::iter::once(polygon.exterior()).chain(polygon.interiors()))
}

fn invalid(problem: impl Into<String>) -> Problem {
    Problem::Invalid(problem.into())
}

fn list<'a>(value: &Datum<'a>) -> Result<Vec<Datum<'a>>, Problem> {
    value.elements().ok_or_else(|| invalid("The coordinates of a geometry must be an array."))
}

/// Longitude and latitude, or x and y; further numbers are ignored.
fn point(value: &Datum<'_>) -> Result<Coord, Problem> {
    let numbers = list(value)?;
    match numbers.iter().map(Datum::as_f64).collect::<Option<Vec<_>>>().as_deref() {
        Some([x, y, ..]) if x.is_finite() && y.is_finite() => Ok(Coord { x: *x, y: *y }),
        _ => Err(invalid("A position must be an array of two or more numbers.")),
    }
}

fn positions(value: &Datum<'_>) -> Result<Vec<Coord>, Problem> {
    list(value)?.iter().map(point).collect()
}

fn line(value: &Datum<'_>) -> Result<LineString, Problem> {
    let points = positions(value)?;
    if points.len() < 2 {
        return Err(invalid("A LineString must have at least two positions."));
    }
    Ok(LineString::new(points))
}

fn polygon(value: &Datum<'_>) -> Result<Polygon, Problem> {
    let mut rings = Vec::new();
    for (at, value) in list(value)?.iter().enumerate() {
        rings.push(ring(value, at + 1)?);
    }
    let points: usize = rings.iter().map(|ring| ring.0.len()).sum();
    if points > POINTS_MAX {
        return Err(invalid(format!("A polygon may have at most {POINTS_MAX} points.")));
    }
    let mut rings = rings.into_iter();
    let Some(exterior) = rings.next() else {
        return Err(invalid("A Polygon must have at least one ring."));
    };
    Ok(Polygon::new(exterior, rings.collect()))
}

fn ring(value: &Datum<'_>, number: usize) -> Result<LineString, Problem> {
    let points = positions(value)?;
    if points.first() != points.last() {
        return Err(invalid(format!(
            "The Polygon input is not valid because the start and end points of the ring number \
             {number} are not the same. Each ring of a polygon must have the same start and end \
             points."
        )));
    }
    if points.len() < 4 {
        return Err(invalid(format!(
            "The Polygon input is not valid because the ring number {number} does not have \
             enough points. Each ring of a polygon must contain at least three distinct points."
        )));
    }
    Ok(LineString::new(points))
}
