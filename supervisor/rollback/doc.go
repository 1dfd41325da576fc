// Package rollback says whether the CustomResourceDefinitions of an older version of an
// operator may take the place of those that are there, without that anything which is
// stored is lost. It compares, and reads custom resources where that depends on them; it
// writes nothing.
package rollback
