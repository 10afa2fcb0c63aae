// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pages are the pages that people read, as globs below the root. Design notes are for developers.
var pages = []string{"README.md", "docs/*.md", "docs/guides/*.md", "docs/reference/*.md", "docs/runbooks/*.md", "charts/plumbline/README.md"}

const (
	chart    = "charts/plumbline"
	apiTypes = "pkg/apis"
)

// readAreas returns all that people read of the repository.
func readAreas(root string) (areas []area, err error) {
	var files []string
	for _, glob := range pages {
		matches, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil {
			return nil, fmt.Errorf("finding pages: %w", err)
		}
		for _, match := range matches {
			name, err := filepath.Rel(root, match)
			if err != nil {
				return nil, fmt.Errorf("naming a page: %w", err)
			}
			files = append(files, filepath.ToSlash(name))
		}
	}
	areas, err = readPages(root, files)
	if err != nil {
		return nil, err
	}
	ofChart, err := readChart(root)
	if err != nil {
		return nil, err
	}
	ofGo, err := readGo(root)
	if err != nil {
		return nil, err
	}
	return append(append(areas, ofChart...), ofGo...), nil
}

// readPages returns an area for each page.
func readPages(root string, files []string) (areas []area, err error) {
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, fmt.Errorf("reading a page: %w", err)
		}
		read := string(text)
		if file == glossaryPage {
			read, _, _ = strings.Cut(read, retiredHeading)
		}
		areas = append(areas, area{name: file, sentences: splitMarkdown(file, read)})
	}
	return areas, nil
}

// readChart returns the areas of the chart.
func readChart(root string) (areas []area, err error) {
	for _, file := range []struct {
		path  string
		split func(file, text string) ([]sentence, error)
	}{
		{"files/alerts/plumbline.rules.yaml", splitAlerts},
		{"values.yaml", splitValues},
		{"templates/NOTES.txt", splitTemplate},
	} {
		name := chart + "/" + file.path
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("reading the chart: %w", err)
		}
		sentences, err := file.split(name, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		areas = append(areas, area{name: name, sentences: sentences})
	}
	policies, err := readTemplates(root)
	if err != nil {
		return nil, err
	}
	return append(areas, policies), nil
}

// readTemplates returns the messages of the admission policies.
func readTemplates(root string) (area, error) {
	a := area{name: chart + "/templates, messages of policies"}
	err := walk(root, chart+"/templates", []string{".yaml", ".tpl"}, func(name string, text []byte) error {
		a.sentences = append(a.sentences, splitPolicy(name, string(text))...)
		return nil
	})
	return a, err
}

// readGo returns an area for the strings of each folder, for the CEL messages and for the
// comments of the kinds.
func readGo(root string) ([]area, error) {
	folders := map[string]*area{}
	messages, comments := area{name: apiTypes + ", CEL messages"}, area{name: apiTypes + ", comments"}
	for _, top := range []string{"cmd", "internal", "pkg"} {
		err := walk(root, top, []string{".go"}, func(name string, text []byte) error {
			if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/zz_generated") {
				return nil
			}
			file, err := parseGo(name, text)
			if err != nil {
				return err
			}
			if strings.HasPrefix(name, apiTypes+"/") {
				messages.sentences = append(messages.sentences, file.messages()...)
				comments.sentences = append(comments.sentences, file.comments()...)
				comments.nameless = append(comments.nameless, file.nameless()...)
			}
			folder := strings.Join(strings.SplitN(name, "/", 3)[:2], "/") + ", strings"
			if folders[folder] == nil {
				folders[folder] = &area{name: folder}
			}
			folders[folder].sentences = append(folders[folder].sentences, file.strings()...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	areas := []area{messages, comments}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		areas = append(areas, *folders[folder])
	}
	return areas, nil
}

// walk calls a function with each file below a folder that has one of the suffixes.
func walk(root, folder string, suffixes []string, take func(name string, text []byte) error) error {
	return filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains(suffixes, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a file: %w", err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("naming a file: %w", err)
		}
		return take(filepath.ToSlash(name), text)
	})
}
