//! Spatial indexes and the container's geometry.
//!
//! On the globe (`Geography`) every coordinate has its bounds already. On a plane
//! (`Geometry`) an index needs bounds.

use super::PolicyError;
use super::fields::{Fields, named, spelling, unknown_name};
use super::indexing::index_path;
use super::path::{IndexPath, PathEnd};
use crate::json::{Number, Object, Value};

/// How coordinates are meant, for the whole container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeospatialConfig {
    /// Degrees on the globe.
    #[default]
    Geography,
    /// Units on a plane.
    Geometry,
}

/// A spatial index on one path.
#[derive(Clone, Debug, PartialEq)]
pub struct SpatialIndex {
    pub path: IndexPath,
    pub types: Vec<SpatialType>,
    /// Given exactly when the container is `Geometry`.
    pub bounds: Option<BoundingBox>,
}

// Bounds are finite, because JSON has no other numbers.
impl Eq for SpatialIndex {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpatialType {
    Point,
    LineString,
    Polygon,
    MultiPolygon,
}

/// The part of the plane that a spatial index covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingBox {
    pub x_min: f64,
    pub y_min: f64,
    pub x_max: f64,
    pub y_max: f64,
}

const CONFIGS: [(&str, GeospatialConfig); 2] =
    [("Geography", GeospatialConfig::Geography), ("Geometry", GeospatialConfig::Geometry)];

const TYPES: [(&str, SpatialType); 4] = [
    ("Point", SpatialType::Point),
    ("LineString", SpatialType::LineString),
    ("Polygon", SpatialType::Polygon),
    ("MultiPolygon", SpatialType::MultiPolygon),
];

impl GeospatialConfig {
    pub(super) fn read(container: &Fields<'_>) -> Result<GeospatialConfig, PolicyError> {
        let Some(fields) = container.object("geospatialConfig")? else {
            return Ok(GeospatialConfig::default());
        };
        match fields.string("type")? {
            None => Ok(GeospatialConfig::default()),
            Some(name) => named(&CONFIGS, name)
                .ok_or_else(|| unknown_name(fields.name_of("type"), name, &CONFIGS)),
        }
    }

    pub(super) fn to_value(self) -> Value {
        Object::from_iter([("type", spelling(&CONFIGS, self))]).into()
    }

    /// Refuses an index that does not fit the container's geometry.
    pub(super) fn check(self, index: &SpatialIndex) -> Result<(), PolicyError> {
        let path = || index.path.to_string();
        match (self, index.bounds) {
            (GeospatialConfig::Geometry, None) => {
                Err(PolicyError::BoundingBoxMissing { path: path() })
            }
            (GeospatialConfig::Geography, Some(_)) => {
                Err(PolicyError::BoundingBoxUnused { path: path() })
            }
            (GeospatialConfig::Geometry, Some(_)) | (GeospatialConfig::Geography, None) => Ok(()),
        }
    }
}

impl SpatialIndex {
    pub(super) fn read_all(indexing: &Fields<'_>) -> Result<Vec<SpatialIndex>, PolicyError> {
        indexing.objects("spatialIndexes")?.iter().map(SpatialIndex::read).collect()
    }

    fn read(fields: &Fields<'_>) -> Result<SpatialIndex, PolicyError> {
        let path = index_path(fields)?;
        if let PathEnd::Tuple(_) = path.end() {
            return Err(PolicyError::TupleOutsideIncluded { path: path.to_string() });
        }
        let bounds = fields.object("boundingBox")?;
        let bounds = bounds.map(|fields| BoundingBox::read(&fields, &path)).transpose()?;
        Ok(SpatialIndex { types: types(fields, &path)?, path, bounds })
    }

    pub(super) fn to_value(&self) -> Value {
        let mut object = Object::from_iter([("path", self.path.as_str())]);
        object.insert("types", self.types.iter().map(|kind| kind.name()).collect::<Value>());
        if let Some(bounds) = self.bounds {
            object.insert("boundingBox", bounds.to_value());
        }
        object.into()
    }
}

impl SpatialType {
    /// Reads one name; `fields` and `field` say which.
    pub(super) fn read(
        fields: &Fields<'_>,
        field: &str,
        name: &str,
    ) -> Result<SpatialType, PolicyError> {
        named(&TYPES, name).ok_or_else(|| unknown_name(fields.name_of(field), name, &TYPES))
    }

    pub(super) fn name(self) -> &'static str {
        spelling(&TYPES, self)
    }
}

impl BoundingBox {
    fn read(fields: &Fields<'_>, path: &IndexPath) -> Result<BoundingBox, PolicyError> {
        let bound = |name: &str| fields.required(name, fields.number(name)?);
        let bounds = BoundingBox {
            x_min: bound("xmin")?,
            y_min: bound("ymin")?,
            x_max: bound("xmax")?,
            y_max: bound("ymax")?,
        };
        if bounds.x_min >= bounds.x_max || bounds.y_min >= bounds.y_max {
            return Err(PolicyError::BoundingBoxEmpty { path: path.to_string() });
        }
        Ok(bounds)
    }

    fn to_value(self) -> Value {
        let number = |bound| Number::from_f64(bound).map_or(Value::Null, Value::Number);
        let bounds = [self.x_min, self.y_min, self.x_max, self.y_max].map(number);
        ["xmin", "ymin", "xmax", "ymax"].into_iter().zip(bounds).collect::<Object>().into()
    }
}

fn types(fields: &Fields<'_>, path: &IndexPath) -> Result<Vec<SpatialType>, PolicyError> {
    let names = fields.strings("types")?;
    if names.is_empty() {
        return Err(PolicyError::SpatialTypesMissing { path: path.to_string() });
    }
    names.iter().map(|name| SpatialType::read(fields, "types", name)).collect()
}
