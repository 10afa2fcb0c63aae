// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown is a block of a page that shows a command with its output.
var shown = regexp.MustCompile("(?ms)^```[a-z]*\n\\$ kubectl plumbline ([^\n]*)\n(.*?)^```")

// TestPagesShowTheOutputOfTheGoldens looks for each line that a page shows in the golden files of the
// commands, so that a page shows no words of an earlier version. Spaces may differ, and … leaves lines out.
func TestPagesShowTheOutputOfTheGoldens(t *testing.T) {
	printed := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".txt" {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			printed[strings.Join(strings.Fields(line), " ")] = true
		}
		return err
	})
	if err != nil {
		t.Fatalf("reading the golden files: %v", err)
	}
	blocks := 0
	for _, folder := range []string{"guides", "reference"} {
		files, err := filepath.Glob("../../docs/" + folder + "/*.md")
		if err != nil || len(files) == 0 {
			t.Fatalf("%d pages in %s, %v", len(files), folder, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range shown.FindAllStringSubmatch(string(text), -1) {
				blocks++
				for line := range strings.Lines(block[2]) {
					line = strings.Join(strings.Fields(line), " ")
					if line != "" && line != "…" && !strings.HasPrefix(line, "$ ") && !printed[line] {
						t.Errorf("%s: no golden file has this line of %q: %s", filepath.Base(file), block[1], line)
					}
				}
			}
		}
	}
	if blocks < 8 {
		t.Errorf("only %d outputs were compared", blocks)
	}
}
