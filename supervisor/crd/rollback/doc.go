// Package rollback determines whether the CustomResourceDefinitions of an older version of an operator may
// replace the live ones without loss of stored data. It compares definitions, and reads custom resources if the
// result depends on them. It writes nothing.
package rollback
