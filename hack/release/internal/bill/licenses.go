// SPDX-License-Identifier: Apache-2.0

package bill

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
	"golang.org/x/mod/module"
)

// permitted are the licenses, by SPDX identifier, under which others' code may be part of
// a binary under Apache-2.0 without more than its notice.
var permitted = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "Unlicense", "Zlib"}

// covered is the least share of a license file, in percent, that must be text of known
// licenses. Below it there are terms that the classifier does not know.
const covered = 75

var (
	licenseNames = regexp.MustCompile(`(?i)^(licen[sc]es?|copying|unlicense)([.-][a-z0-9.-]*)?$`)
	noticeNames  = regexp.MustCompile(`(?i)^(notice|patents|authors)([.-][a-z0-9.-]*)?$`)
	// A file of source may be called license.go.
	sourceNames = regexp.MustCompile(`(?i)\.(go|s|c|h|sh|py|yaml|yml|json)$`)
)

// Text is one file that has to go along.
type Text struct {
	Name string
	Text string
}

// License is what a module is under.
type License struct {
	Module Module
	// IDs are SPDX identifiers, sorted.
	IDs   []string
	Texts []Text
}

// UnknownError refuses a module whose license the classifier does not know.
type UnknownError struct {
	Module Module
	Reason string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the license of %s %s is unknown: %s: read it, and either replace the module or extend hack/release/internal/bill", e.Module.Path, e.Module.Version, e.Reason)
}

// ForbiddenError refuses a module under a license that asks more than a notice.
type ForbiddenError struct {
	Module Module
	ID     string
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s %s is under %s, which is none of the permitted licenses (%s): replace the module", e.Module.Path, e.Module.Version, e.ID, strings.Join(permitted, ", "))
}

// Cache finds the source of modules.
type Cache struct {
	// Modules is GOMODCACHE, Toolchain is GOROOT.
	Modules, Toolchain string
}

func (c Cache) folder(m Module) (string, error) {
	if m.Path == Stdlib {
		return c.Toolchain, nil
	}
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return "", err
	}
	return filepath.Join(c.Modules, filepath.FromSlash(path)+"@"+version), nil
}

// Licenses reads and classifies the licenses of modules. packages are the folders of the
// compiled packages by module: a part of a module may have a license of its own. The error
// joins an *[UnknownError] or a *[ForbiddenError] for each module that must not be in a
// release.
func (c Cache) Licenses(modules []Module, packages map[string][]string) ([]License, error) {
	var out []License
	var problems []error
	for _, m := range modules {
		license, err := c.license(m, packages[m.Path])
		if err != nil {
			problems = append(problems, err)
			continue
		}
		out = append(out, license)
	}
	return out, errors.Join(problems...)
}

func (c Cache) license(m Module, packages []string) (License, error) {
	root, err := c.folder(m)
	if err != nil {
		return License{}, fmt.Errorf("finding the source of %s %s: %w", m.Path, m.Version, err)
	}
	license := License{Module: m}
	ids := map[string]bool{}
	for _, folder := range foldersAbove(root, packages) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return License{}, fmt.Errorf("reading the source of %s %s: %w: run `go mod download`", m.Path, m.Version, err)
		}
		for _, entry := range entries {
			name := entry.Name()
			isLicense := licenseNames.MatchString(name) && !sourceNames.MatchString(name)
			if !entry.Type().IsRegular() || !isLicense && !noticeNames.MatchString(name) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				return License{}, fmt.Errorf("reading the license of %s %s: %w", m.Path, m.Version, err)
			}
			relative, err := filepath.Rel(root, filepath.Join(folder, name))
			if err != nil {
				return License{}, fmt.Errorf("naming the license of %s %s: %w", m.Path, m.Version, err)
			}
			license.Texts = append(license.Texts, Text{Name: filepath.ToSlash(relative), Text: string(content)})
			if !isLicense {
				continue
			}
			if err := classify(m, relative, content, ids); err != nil {
				return License{}, err
			}
		}
	}
	if len(ids) == 0 {
		return License{}, &UnknownError{Module: m, Reason: "it has no file with a license"}
	}
	license.IDs = slices.Sorted(maps.Keys(ids))
	return license, nil
}

// classify adds the licenses of one file to ids.
func classify(m Module, name string, content []byte, ids map[string]bool) error {
	coverage := licensecheck.Scan(content)
	if coverage.Percent < covered {
		return &UnknownError{Module: m, Reason: fmt.Sprintf("%.0f %% of %s is text of known licenses, want %d %%", coverage.Percent, name, covered)}
	}
	for _, match := range coverage.Match {
		if match.IsURL {
			continue
		}
		if !slices.Contains(permitted, match.ID) {
			return &ForbiddenError{Module: m, ID: match.ID}
		}
		ids[match.ID] = true
	}
	return nil
}

// foldersAbove are the root of a module and all folders between it and its packages.
func foldersAbove(root string, packages []string) []string {
	folders := map[string]bool{root: true}
	for _, folder := range packages {
		for ; folder != root && strings.HasPrefix(folder, root+string(filepath.Separator)); folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	return slices.Sorted(maps.Keys(folders))
}

// FormatLicenses lists the modules, and then each text once, with the files that have it.
func FormatLicenses(licenses []License) []byte {
	var text strings.Builder
	text.WriteString("Plumbline is under the Apache License 2.0. It contains the code of others:\n\n")
	var order []string
	files := map[string][]string{}
	for _, license := range licenses {
		fmt.Fprintf(&text, "%s %s: %s\n", license.Module.Path, license.Module.Version, strings.Join(license.IDs, ", "))
		for _, file := range license.Texts {
			content := strings.TrimSpace(strings.ReplaceAll(file.Text, "\r\n", "\n"))
			if files[content] == nil {
				order = append(order, content)
			}
			files[content] = append(files[content], license.Module.Path+"@"+license.Module.Version+"/"+file.Name)
		}
	}
	for _, content := range order {
		fmt.Fprintf(&text, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(files[content], "\n"), content)
	}
	return []byte(text.String())
}
