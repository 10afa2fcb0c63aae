// SPDX-License-Identifier: Apache-2.0

package bill

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// text is one of the licenses in testdata.
func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// cacheOf is a module cache with one module, example.com/M@v1.0.0.
func cacheOf(t *testing.T, files map[string]string) Cache {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, "example.com", "!m@v1.0.0", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return Cache{Modules: root}
}

var one = Module{Path: "example.com/M", Version: "v1.0.0", Sum: "h1:abc="}

func TestLicenses(t *testing.T) {
	mit, gpl := text(t, "MIT.txt"), text(t, "GPL.txt")
	cases := map[string]struct {
		files    map[string]string
		packages []string
		ids      []string
		texts    []string
		want     any
	}{
		"a permitted license":                {files: map[string]string{"LICENSE": mit}, ids: []string{"MIT"}, texts: []string{"LICENSE"}},
		"a notice goes along":                {files: map[string]string{"LICENSE.md": mit, "NOTICE": "by many"}, ids: []string{"MIT"}, texts: []string{"LICENSE.md", "NOTICE"}},
		"a part with a license of its own":   {files: map[string]string{"LICENSE": mit, "part/COPYING": mit, "part/x.go": ""}, packages: []string{"part"}, ids: []string{"MIT"}, texts: []string{"LICENSE", "part/COPYING"}},
		"a part that is not compiled":        {files: map[string]string{"LICENSE": mit, "part/COPYING": gpl}, ids: []string{"MIT"}, texts: []string{"LICENSE"}},
		"a source file of that name":         {files: map[string]string{"LICENSE": mit, "license.go": "package m"}, ids: []string{"MIT"}, texts: []string{"LICENSE"}},
		"a forbidden license":                {files: map[string]string{"LICENSE": gpl}, want: new(*ForbiddenError)},
		"a forbidden license beside another": {files: map[string]string{"LICENSE": mit, "part/LICENSE": gpl}, packages: []string{"part"}, want: new(*ForbiddenError)},
		"an unknown license":                 {files: map[string]string{"LICENSE": "You may use it on Tuesdays, if you bring cake for all who are there at that time."}, want: new(*UnknownError)},
		"no license":                         {files: map[string]string{"README.md": "hello"}, want: new(*UnknownError)},
		"a module that is not in the cache":  {want: new(*os.PathError)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cache := cacheOf(t, tc.files)
			var packages []string
			for _, folder := range tc.packages {
				packages = append(packages, filepath.Join(cache.Modules, "example.com", "!m@v1.0.0", folder))
			}
			got, err := cache.Licenses([]Module{one}, map[string][]string{one.Path: packages})
			if tc.want != nil {
				if err == nil || !errors.As(err, tc.want) || !strings.Contains(err.Error(), "example.com/M v1.0.0") {
					t.Errorf("error %v, want a %T that names the module", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, file := range got[0].Texts {
				names = append(names, file.Name)
			}
			if diff := cmp.Diff([][]string{tc.ids, tc.texts}, [][]string{got[0].IDs, names}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEachTextIsWrittenOnce(t *testing.T) {
	licenses := []License{
		{Module: one, IDs: []string{"MIT"}, Texts: []Text{{"LICENSE", "the text\r\n"}}},
		{Module: Module{Path: "example.com/n", Version: "v2.0.0"}, IDs: []string{"MIT"}, Texts: []Text{{"LICENSE", "the text\n"}, {"NOTICE", "another"}}},
	}
	got := string(FormatLicenses(licenses))
	if strings.Count(got, "the text") != 1 || strings.Count(got, "another") != 1 {
		t.Errorf("want each text once:\n%s", got)
	}
	for _, want := range []string{"example.com/M v1.0.0: MIT\n", "example.com/M@v1.0.0/LICENSE\nexample.com/n@v2.0.0/LICENSE\n", "example.com/n@v2.0.0/NOTICE\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}

func TestReadModulesOfThisTest(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := ReadModules(binary)
	if err != nil {
		t.Fatal(err)
	}
	// A test's own record has no modules; those of a program are read in package assemble.
	if len(modules) != 1 || modules[0].Path != Stdlib || !strings.HasPrefix(modules[0].Version, "1.") {
		t.Errorf("modules %v", modules)
	}
	if _, err := ReadModules(filepath.Join("testdata", "MIT.txt")); err == nil {
		t.Error("a text was taken for a binary")
	}
}

func TestCycloneDX(t *testing.T) {
	subject := Subject{Name: "webhook", Version: "v0.1.0", Platform: "linux/arm64", SHA256: strings.Repeat("a", 64), Time: time.Unix(1767323045, 0)}
	licenses := []License{{Module: one, IDs: []string{"BSD-3-Clause", "MIT"}}, {Module: Module{Path: Stdlib, Version: "1.26.8"}, IDs: []string{"BSD-3-Clause"}}}
	got, err := CycloneDX(subject, licenses)
	if err != nil {
		t.Fatal(err)
	}
	again, err := CycloneDX(subject, licenses)
	if err != nil || string(got) != string(again) {
		t.Errorf("a second bill of the same binary differs (%v)", err)
	}
	var bom struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Timestamp string
			Component struct {
				Name, Version, Purl string
				Hashes              []struct{ Alg, Content string }
			}
		}
		Components []struct {
			Purl     string
			Licenses []struct{ License struct{ ID string } }
		}
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(got, &bom); err != nil {
		t.Fatal(err)
	}
	main := bom.Metadata.Component
	if bom.BOMFormat != "CycloneDX" || bom.Metadata.Timestamp != "2026-01-02T03:04:05Z" || main.Name != "webhook" || main.Hashes[0].Content != subject.SHA256 {
		t.Errorf("head %+v", bom)
	}
	if len(bom.Components) != 2 || bom.Components[0].Purl != "pkg:golang/example.com/m@v1.0.0" || len(bom.Components[0].Licenses) != 2 || bom.Components[1].Purl != "pkg:golang/stdlib@1.26.8" {
		t.Errorf("components %+v", bom.Components)
	}
	want := []string{"pkg:golang/example.com/m@v1.0.0", "pkg:golang/stdlib@1.26.8"}
	if diff := cmp.Diff(want, bom.Dependencies[0].DependsOn); diff != "" || bom.Dependencies[0].Ref != main.Purl {
		t.Errorf("dependencies of %s (-want +got):\n%s", bom.Dependencies[0].Ref, diff)
	}
}
