// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Commit is what a release is built from.
type Commit struct {
	// Hash in full.
	Hash string
	// Time of the commit: the only time that anything of a release carries.
	Time time.Time
	// Dirty says that the files are not those of the commit.
	Dirty bool
}

// DirtyError refuses a working tree that differs from its commit.
type DirtyError struct{ Changes []string }

func (e *DirtyError) Error() string {
	shown := e.Changes[:min(5, len(e.Changes))]
	return fmt.Sprintf("checking the working tree: %d files differ from the commit (%s): commit them, or try the release with DIRTY=1", len(e.Changes), strings.Join(shown, ", "))
}

// ReadCommit asks git for the commit of the repository in folder. Without allowDirty,
// files that differ from it are a *[DirtyError]. A tag of the version's name on another
// commit is an error: the version is taken.
func ReadCommit(ctx context.Context, folder string, version Version, allowDirty bool) (Commit, error) {
	described, err := git(ctx, folder, "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return Commit{}, fmt.Errorf("reading the commit: a release is made in a clone of the repository: %w", err)
	}
	hash, seconds, _ := strings.Cut(described, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Commit{}, fmt.Errorf("reading the time of commit %s: %w", hash, err)
	}
	status, err := git(ctx, folder, "status", "--porcelain")
	if err != nil {
		return Commit{}, fmt.Errorf("checking the working tree: %w", err)
	}
	commit := Commit{Hash: hash, Time: time.Unix(at, 0).UTC(), Dirty: status != ""}
	if commit.Dirty && !allowDirty {
		return Commit{}, &DirtyError{Changes: changedFiles(status)}
	}
	// The tag is made after the release was tried, so it need not exist.
	if tagged, err := git(ctx, folder, "rev-parse", "--verify", "--quiet", "refs/tags/"+version.String()+"^{commit}"); err == nil && tagged != hash {
		return Commit{}, fmt.Errorf("checking the tag %s: it is on commit %.12s, and this is %.12s: check out the tag, or choose another version", version, tagged, hash)
	}
	return commit, nil
}

func changedFiles(status string) []string {
	var files []string
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) > 1 {
			files = append(files, fields[1])
		}
	}
	return files
}

func git(ctx context.Context, folder string, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
