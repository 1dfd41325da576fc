package sources

import (
	"errors"
	"fmt"
	"strings"
)

// InvalidError is an invalid setting.
type InvalidError struct {
	// File is the file or the key with the setting, and Line its line; 0 if it is unknown.
	File string
	Line int
	// Problem is what is wrong, and Remedy what to do about it.
	Problem, Remedy string
}

// Error returns the place, the problem and the remedy.
func (e *InvalidError) Error() string {
	place := e.File
	if e.Line > 0 {
		place = fmt.Sprintf("%s, line %d", e.File, e.Line)
	}
	problem := e.Problem
	if len(problem) > maxProblemBytes {
		problem = strings.ToValidUTF8(problem[:maxProblemBytes], "") + "…"
	}
	return place + ": " + problem + "; " + e.Remedy
}

// maxProblemBytes is the largest part of a problem in the text of an error: a problem can quote the file.
const maxProblemBytes = 1000

// maxProblems is the number of problems that one error lists.
const maxProblems = 10

// invalid returns the first problems as one error; nil if there are none.
func invalid(problems []error) error {
	if len(problems) > maxProblems {
		more := fmt.Errorf("%w: %d", errMore, len(problems)-maxProblems)
		problems = append(problems[:maxProblems:maxProblems], more)
	}
	return join(problems)
}

var errMore = errors.New("further problems")

// joined is several errors in one line.
type joined []error

func join(all []error) error {
	if len(all) == 0 {
		return nil
	}
	return joined(all)
}

// Error returns the texts of all errors.
func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (j joined) Unwrap() []error { return j }
