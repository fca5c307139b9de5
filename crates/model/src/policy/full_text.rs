//! Full text: which properties hold prose, and in which language.

use super::PolicyError;
use super::fields::Fields;
use super::path::PropertyPath;
use crate::json::{Object, Value};

/// The languages that the service can tokenise.
const LANGUAGES: [&str; 7] = ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT"];

/// The properties of a container that are searched as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullTextPolicy {
    default_language: String,
    paths: Vec<FullTextPath>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullTextPath {
    pub path: PropertyPath,
    /// Absent means the policy's default.
    pub language: Option<String>,
}

impl FullTextPolicy {
    /// Reads the value of `fullTextPolicy`.
    pub fn parse(value: &Value) -> Result<FullTextPolicy, PolicyError> {
        let fields = Fields::of("fullTextPolicy".to_owned(), value)?;
        let default = language(fields.string("defaultLanguage")?)?;
        let mut paths: Vec<FullTextPath> = Vec::new();
        for path in fields.objects("fullTextPaths")? {
            let next = FullTextPath::read(&path)?;
            if paths.iter().any(|earlier| earlier.path == next.path) {
                let field = fields.name_of("fullTextPaths");
                return Err(PolicyError::Repeated { field, path: next.path.to_string() });
            }
            paths.push(next);
        }
        let [english, ..] = LANGUAGES;
        Ok(FullTextPolicy { default_language: default.unwrap_or(english.to_owned()), paths })
    }

    #[must_use]
    pub fn default_language(&self) -> &str {
        &self.default_language
    }

    #[must_use]
    pub fn paths(&self) -> &[FullTextPath] {
        &self.paths
    }

    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::from_iter([("defaultLanguage", self.default_language.as_str())]);
        object.insert(
            "fullTextPaths",
            self.paths.iter().map(FullTextPath::to_value).collect::<Value>(),
        );
        object.into()
    }
}

impl FullTextPath {
    fn read(fields: &Fields<'_>) -> Result<FullTextPath, PolicyError> {
        let path = fields.required("path", fields.string("path")?)?;
        let refused = || PolicyError::FullTextPath { path: path.to_owned() };
        Ok(FullTextPath {
            path: PropertyPath::read(path).ok_or_else(refused)?,
            language: language(fields.string("language")?)?,
        })
    }

    fn to_value(&self) -> Value {
        let mut object = Object::from_iter([("path", self.path.as_str())]);
        if let Some(language) = &self.language {
            object.insert("language", language.as_str());
        }
        object.into()
    }
}

fn language(name: Option<&str>) -> Result<Option<String>, PolicyError> {
    match name {
        Some(name) if !LANGUAGES.contains(&name) => Err(PolicyError::FullTextLanguage {
            language: name.to_owned(),
            supported: LANGUAGES.map(|known| format!("\"{known}\"")).join(", "),
        }),
        name => Ok(name.map(str::to_owned)),
    }
}
