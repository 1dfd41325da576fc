// Package catalogfile changes the text of catalog files and catalog templates and preserves
// everything else in them: comments, order and layout. Its functions are pure.
//
// Every change is checked: the changed text must decode to the requested value. If the layout of a
// YAML document does not permit a change, as with a list in flow style, the whole document is
// encoded again, with its comments.
package catalogfile
