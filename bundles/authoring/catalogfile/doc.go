// Package catalogfile changes the text of catalog files and catalog templates and leaves
// everything else in them as it is: comments, order and layout. It is pure.
//
// Every change is checked: the changed text has to decode to what was asked for. A YAML
// document whose layout has no place for a change, such as a list in flow style, is encoded
// as a whole, with its comments.
package catalogfile
