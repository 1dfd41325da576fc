// Package authoring runs what the documentation tells authors of catalogs to do.
package authoring
