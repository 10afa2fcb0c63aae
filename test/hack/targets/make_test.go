// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A disk without room is had by naming /proc for the cache: the kernel reports no
// free block there, to everybody and on every machine.
const fullDisk = "PLUMBLINE_CACHE=/proc/plumbline"

func TestWithoutRoomNothingIsBuilt(t *testing.T) {
	c := copyTree(t)
	for _, target := range []string{"demo", "test", "cluster-up"} {
		t.Run("make "+target, func(t *testing.T) {
			c := tree{t, c.dir}
			r := c.run([]string{fullDisk}, "make", target)
			c.wantFailure(r, 2, "0.0 GiB of disk free where the cache is: 12 GiB are needed", "PLUMBLINE_CACHE")
			if count := strings.Count(r.output, "this machine cannot run a cluster yet"); count != 1 {
				t.Errorf("the message came %d times:\n%s", count, r.output)
			}
			// Its own stages and steps have not begun, and the tool that looked is all there is.
			for _, begun := range []string{"=== verify", "building binaries", "updating the package index", "installing ["} {
				if strings.Contains(r.output, begun) {
					t.Errorf("the output holds %q:\n%s", begun, r.output)
				}
			}
			if diff := cmp.Diff([]string{"bin/cluster"}, c.files("bin")); diff != "" {
				t.Errorf("built (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("with CLUSTER=current this machine need not be able to run one", func(t *testing.T) {
		r := tree{t, c.dir}.run([]string{fullDisk}, "make", "preflight", "CLUSTER=current")
		if r.status != 0 || strings.Contains(r.output, "cannot run a cluster") {
			t.Errorf("exit status %d:\n%s", r.status, r.output)
		}
	})
}

func TestHelpListsEveryTarget(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var phony []string
	for _, match := range regexp.MustCompile(`(?m)^\.PHONY: *(.*)$`).FindAllStringSubmatch(string(makefile), -1) {
		phony = append(phony, strings.Fields(match[1])...)
	}
	if len(phony) < 15 {
		t.Fatalf("only %d targets were found in the Makefile: %v", len(phony), phony)
	}
	// A plain make shows the same list.
	for _, args := range [][]string{{"help"}, {}} {
		r := tree{t, root}.run(nil, "make", args...)
		if r.status != 0 {
			t.Fatalf("make %v: exit status %d:\n%s", args, r.status, r.output)
		}
		var listed []string
		for _, match := range regexp.MustCompile(`(?m)^  make ([a-z0-9-]+) +\S`).FindAllStringSubmatch(r.output, -1) {
			listed = append(listed, match[1])
		}
		slices.Sort(listed)
		slices.Sort(phony)
		if diff := cmp.Diff(phony, listed); diff != "" {
			t.Errorf("make %v lists other targets than the Makefile declares (-declared +listed):\n%s", args, diff)
		}
	}
}

// seldom are the integration tests that only a target of their own runs.
var seldom = []string{"upgrade", "peers", "prometheus"}

// A folder inside of a folder is easily left out: the targets name folders.
func TestEachIntegrationTestIsRun(t *testing.T) {
	r := tree{t, root}.run(nil, "make", "--dry-run", "integration-inprocess", "integration-separate", "floods")
	run := regexp.MustCompile(`\./test/integration/\S+`).FindAllString(r.output, -1)
	if len(run) < 15 {
		t.Fatalf("only %d folders are run:\n%s", len(run), r.output)
	}
	tests := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "test/integration"), func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			tests[strings.TrimPrefix(filepath.Dir(path), filepath.Join(root, "test/integration")+"/")] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range tests {
		named := "./test/integration/" + folder
		isRun := slices.ContainsFunc(run, func(pattern string) bool {
			above, all := strings.CutSuffix(pattern, "/...")
			return pattern == named || all && strings.HasPrefix(named, above+"/")
		})
		if !isRun && !slices.Contains(seldom, folder) {
			t.Errorf("no target runs the tests in test/integration/%s", folder)
		}
	}
}

// TestStagesStopAtTheFirstThatFails gives the script a Makefile of three targets.
func TestStagesStopAtTheFirstThatFails(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "hack", "stages.sh"))
	if err != nil {
		t.Fatal(err)
	}
	c := tree{t, t.TempDir()}
	c.write("stages.sh", script, 0o755)
	c.write("Makefile", []byte("one three:\n\t@echo ran $@\ntwo:\n\t@echo ran $@; false\n"), 0o644)
	t.Run("one that fails is named, and no later one runs", func(t *testing.T) {
		c := tree{t, c.dir}
		r := c.run(nil, "./stages.sh", "one", "two", "three")
		c.wantFailure(r, 1, "=== one: ok, ", "ran two", "=== two: FAILED after ")
		if strings.Contains(r.output, "three") || strings.Contains(r.output, "all stages ok") {
			t.Errorf("it went on:\n%s", r.output)
		}
	})
	t.Run("all that pass are listed", func(t *testing.T) {
		r := tree{t, c.dir}.run(nil, "./stages.sh", "one", "three")
		if r.status != 0 || !strings.Contains(r.output, "=== all stages ok: one three, ") {
			t.Errorf("exit status %d:\n%s", r.status, r.output)
		}
	})
}

// TestAStageWhoseTreeIsDeletedFails gives the script targets that delete what the script
// keeps, as a checkout that is removed during a run does.
func TestAStageWhoseTreeIsDeletedFails(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "hack", "stages.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ recipe, stages string }{
		"the target passes, and the outputs are gone":      {"rm -rf bin", "gone two"},
		"the target fails, and the outputs are gone":       {"rm -rf bin; false", "gone two"},
		"the target passes, and the tree is gone":          {"rm -rf $(CURDIR)", "gone two"},
		"the target fails, and the tree is gone":           {"rm -rf $(CURDIR); false", "gone two"},
		"the target of another lane passes without tree":   {"rm -rf $(CURDIR)", "one|gone two"},
		"the target of the last stage passes without tree": {"rm -rf $(CURDIR)", "one gone"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tree{t, t.TempDir()}
			c.write("stages.sh", script, 0o755)
			c.write("Makefile", []byte("one two:\n\t@echo ran $@\ngone:\n\t@"+tc.recipe+"\n"), 0o644)
			r := c.run(nil, "./stages.sh", strings.Fields(tc.stages)...)
			c.wantFailure(r, 1, "=== gone: FAILED after ")
			if strings.Contains(r.output, "ran two") || strings.Contains(r.output, "all stages ok") {
				t.Errorf("it went on:\n%s", r.output)
			}
		})
	}
}

// TestLanesOfAStageRunSideBySide gives the script lanes that meet: each waits for a
// pipe that only the other opens.
func TestLanesOfAStageRunSideBySide(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "hack", "stages.sh"))
	if err != nil {
		t.Fatal(err)
	}
	c := tree{t, t.TempDir()}
	c.write("stages.sh", script, 0o755)
	c.write("Makefile", []byte("front:\n\t@echo here > pipe; echo front met its neighbor\n"+
		"back:\n\t@cat pipe > /dev/null; echo back met its neighbor\n"+
		"broken: back\n\t@false\nlast:\n\t@echo ran $@\n"), 0o644)
	if r := c.run(nil, "mkfifo", "pipe"); r.status != 0 {
		t.Fatal(r.output)
	}
	t.Run("a lane prints its targets as blocks", func(t *testing.T) {
		r := tree{t, c.dir}.run(nil, "./stages.sh", "front|back,last")
		if r.status != 0 || !strings.Contains(r.output, "=== last: start, beside other targets\nran last\n=== last: ok, ") {
			t.Errorf("exit status %d:\n%s", r.status, r.output)
		}
	})
	t.Run("a lane that ends meanwhile prints no line within a block", func(t *testing.T) {
		c := tree{t, t.TempDir()}
		c.write("stages.sh", script, 0o755)
		// The script asks awk for the time of the processors when a target has ended. Then the block of the lane
		// behind waits until the first lane has printed its line, which its next target shows.
		awk, err := exec.LookPath("awk")
		if err != nil {
			t.Fatal(err)
		}
		c.write("path/awk", []byte("#!/bin/sh\nif grep -qs here bin/stages/back.log && mkdir waited 2>/dev/null; then echo > ended; cat printed > /dev/null; fi\nexec "+awk+" \"$@\"\n"), 0o755)
		c.write("Makefile", []byte("back:\n\t@cat begun > /dev/null; echo here\nfront:\n\t@echo > begun; cat ended > /dev/null\nnext:\n\t@echo > printed\n"), 0o644)
		if r := c.run(nil, "mkfifo", "begun", "ended", "printed"); r.status != 0 {
			t.Fatal(r.output)
		}
		r := c.run([]string{"PATH=" + filepath.Join(c.dir, "path") + ":" + os.Getenv("PATH")}, "./stages.sh", "front,next|back")
		if r.status != 0 || !strings.Contains(r.output, "=== back: start, beside other targets\nhere\n=== back: ok, ") {
			t.Errorf("exit status %d:\n%s", r.status, r.output)
		}
	})
	t.Run("only a lane after ~ yields the processors", func(t *testing.T) {
		c := tree{t, t.TempDir()}
		c.write("stages.sh", script, 0o755)
		c.write("Makefile", []byte("first kind rude:\n\t@echo $@ has $$(nice)\n"), 0o644)
		r := c.run(nil, "./stages.sh", "first|~kind|rude")
		nice := map[string]int{}
		for _, m := range regexp.MustCompile(`(\w+) has (\d+)\n`).FindAllStringSubmatch(r.output, -1) {
			nice[m[1]], _ = strconv.Atoi(m[2])
		}
		if r.status != 0 || len(nice) != 3 || nice["rude"] != nice["first"] || nice["kind"] != min(nice["first"]+5, 19) {
			t.Errorf("exit status %d:\n%s", r.status, r.output)
		}
	})
	t.Run("a lane that fails is named, fails the stage, and lets the other lane end", func(t *testing.T) {
		c := tree{t, c.dir}
		r := c.run(nil, "./stages.sh", "front|broken,last", "last")
		c.wantFailure(r, 1, "back met its neighbor", "=== broken: FAILED after ", "=== front: ok, ")
		if strings.Contains(r.output, "ran last") {
			t.Errorf("it went on:\n%s", r.output)
		}
	})
	t.Run("the reasons of all failures come last", func(t *testing.T) {
		c := tree{t, t.TempDir()}
		c.write("stages.sh", script, 0o755)
		c.write("Makefile", []byte("one:\n\t@echo one is bad; false\n"+
			"two:\n\t@echo '== Failed in two: TestA' | tee -a bin/stages/failures; false\n"), 0o644)
		for range 2 { // the second run tells nothing of the first
			r := c.run(nil, "./stages.sh", "one|two")
			_, last, _ := strings.Cut(r.output, ": FAILED after ")
			_, last, _ = strings.Cut(last, ": FAILED after ")
			c.wantFailure(r, 1)
			if strings.Count(last, "one is bad") != 1 || strings.Count(last, "== Failed in one:\n") != 1 || strings.Count(last, "== Failed in two: TestA\n") != 1 {
				t.Errorf("the last lines:\n%s", last)
			}
		}
	})
	t.Run("a first lane that fails lets the other lanes end", func(t *testing.T) {
		c := tree{t, c.dir}
		c.edit("Makefile", "echo front met its neighbor", "false")
		r := c.run(nil, "./stages.sh", "front|back", "last")
		c.wantFailure(r, 1, "=== front: FAILED after ", "=== back: ok, ")
		if strings.Contains(r.output, "ran last") {
			t.Errorf("it went on:\n%s", r.output)
		}
	})
}
