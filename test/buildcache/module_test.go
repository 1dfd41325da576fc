package buildcache

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuildRefusesModules(t *testing.T) {
	program := Program{Name: "p", Package: "example.com/p"}

	cases := map[string]struct {
		reason string
		module Module
	}{
		"NoName":         {reason: "Without a name it would share the root.", module: Module{}},
		"NameLeaves":     {reason: "A name may not leave the root.", module: Module{Name: ".."}},
		"NameIsAPath":    {reason: "A name is one folder.", module: Module{Name: "a/b"}},
		"ProgramIsAPath": {reason: "A program is one file.", module: Module{Name: "m", Programs: []Program{{Name: "a/b", Package: "p"}}}},
		"ProgramIsHidden": {
			reason: "Names with a dot are those of unfinished builds.",
			module: Module{Name: "m", Programs: []Program{{Name: ".p", Package: "p"}}},
		},
		"PackageIsAFlag": {
			reason: "A package may not turn into a flag of the go command.",
			module: Module{Name: "m", Programs: []Program{{Name: "p", Package: "-toolexec=x"}}},
		},
		"Twice": {reason: "Two programs may not overwrite each other.", module: Module{Name: "m", Programs: []Program{program, program}}},
		"LinkIsAPath": {
			reason: "A link is one file.",
			module: Module{Name: "m", Programs: []Program{{Name: "p", Package: "p", Links: []string{"a/b"}}}},
		},
		"LinkTwice": {
			reason: "A link may not overwrite a program.",
			module: Module{Name: "m", Programs: []Program{program, {Name: "q", Package: "q", Links: []string{"p"}}}},
		},
		"FileLeaves": {reason: "A file may not leave the directory.", module: Module{Name: "m", Files: []File{{Name: "../f", Path: "f"}}}},
		"FileTwice": {
			reason: "A file may not overwrite a program.",
			module: Module{Name: "m", Programs: []Program{program}, Files: []File{{Name: "p", Path: "f"}}},
		},
		"NoModule": {reason: "A folder without go.mod is no module.", module: Module{Name: "m", Dir: t.TempDir(), Programs: []Program{program}}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(RootVariable, t.TempDir())

			_, err := Build(t.Context(), tc.module, io.Discard)
			if !errors.Is(err, ErrInvalidModule) {
				t.Errorf("%s\nBuild(...): want %v, got %v", tc.reason, ErrInvalidModule, err)
			}
		})
	}
}

func TestRoot(t *testing.T) {
	t.Setenv(RootVariable, "")
	t.Setenv("XDG_CACHE_HOME", "/somewhere")

	got, err := Root()
	if diff := cmp.Diff("/somewhere/chandlery", got); diff != "" || err != nil {
		t.Errorf("Root() without %s: %v, -want, +got:\n%s", RootVariable, err, diff)
	}

	t.Setenv(RootVariable, "/elsewhere")

	got, err = Root()
	if diff := cmp.Diff("/elsewhere", got); diff != "" || err != nil {
		t.Errorf("Root() with %s: %v, -want, +got:\n%s", RootVariable, err, diff)
	}
}

func TestSourceDir(t *testing.T) {
	here, err := SourceDir("test/buildcache")
	if err != nil {
		t.Fatalf("SourceDir(...): %v", err)
	}

	wd, err := filepath.Abs(".")
	if diff := cmp.Diff(wd, here); diff != "" || err != nil {
		t.Errorf("SourceDir(...): %v, -want, +got:\n%s", err, diff)
	}

	t.Chdir(filepath.Join("testdata", "hello", "dep"))

	again, err := SourceDir("test/buildcache")
	if diff := cmp.Diff(wd, again); diff != "" || err != nil {
		t.Errorf("SourceDir(...) from inside a nested module: %v, -want, +got:\n%s", err, diff)
	}

	t.Chdir(t.TempDir())

	_, err = SourceDir("test/buildcache")
	if err == nil {
		t.Error("SourceDir(...) outside the checkout: want an error, got none")
	}
}

func TestRequired(t *testing.T) {
	dir := filepath.Join("testdata", "hello")

	got, err := Required(dir, "example.com/dep")
	if diff := cmp.Diff("v1.2.3", got); diff != "" || err != nil {
		t.Errorf("Required(...): %v, -want, +got:\n%s", err, diff)
	}

	_, err = Required(dir, "example.com/other")
	if err == nil {
		t.Error("Required(...) of a module that is not required: want an error, got none")
	}
}
