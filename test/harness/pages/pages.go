// SPDX-License-Identifier: Apache-2.0

// Package pages reads the manifests that the pages of the project show, so that tests can try them.
package pages

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Manifest is one YAML document of a page or of a file of examples, with an object of Plumbline's API.
type Manifest struct {
	// Place is the file and the line of its first line.
	Place string
	Body  string
}

var (
	fence = regexp.MustCompile("^( *)```([a-z]*)$")
	ours  = regexp.MustCompile(`(?m)^apiVersion: plumbline\.dev/`)
)

// Read returns the manifests of README.md, docs and examples below the root of the repository.
func Read(root string) (manifests []Manifest, err error) {
	take := func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a page: %w", err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("naming a page: %w", err)
		}
		if filepath.Ext(path) == ".md" {
			manifests = append(manifests, OfPage(filepath.ToSlash(name), string(text))...)
		} else {
			manifests = append(manifests, documents(filepath.ToSlash(name), 1, strings.Split(string(text), "\n"))...)
		}
		return nil
	}
	if err := take(filepath.Join(root, "README.md")); err != nil {
		return nil, err
	}
	for folder, suffix := range map[string]string{"docs": ".md", "examples": ".yaml"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != suffix {
				return err
			}
			return take(path)
		})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", folder, err)
		}
	}
	return manifests, nil
}

// OfPage returns the manifests in the blocks of YAML of a page.
func OfPage(name, text string) (manifests []Manifest) {
	var block []string
	indent, begin := "", 0
	for i, line := range strings.Split(text, "\n") {
		mark := fence.FindStringSubmatch(line)
		switch {
		case begin == 0 && mark != nil && mark[2] == "yaml":
			indent, begin, block = mark[1], i+2, nil
		case begin == 0 && mark != nil:
			begin = -1
		case begin != 0 && mark != nil && mark[2] == "":
			if begin > 0 {
				manifests = append(manifests, documents(name, begin, block)...)
			}
			begin = 0
		case begin > 0:
			block = append(block, strings.TrimPrefix(line, indent))
		}
	}
	return manifests
}

// documents splits lines at the marks between documents, and keeps Plumbline's objects.
func documents(name string, line int, lines []string) (manifests []Manifest) {
	start := 0
	for i := 0; i <= len(lines); i++ {
		if i < len(lines) && lines[i] != "---" {
			continue
		}
		if body := strings.Join(lines[start:i], "\n"); ours.MatchString(body) {
			manifests = append(manifests, Manifest{Place: fmt.Sprintf("%s:%d", name, line+start), Body: body})
		}
		start = i + 1
	}
	return manifests
}
