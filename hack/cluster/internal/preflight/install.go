// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
)

// servicePolicy is the script that Debian's package scripts ask whether they may
// start a daemon (invoke-rc.d(8)); status 101 means no.
const servicePolicy = "/usr/sbin/policy-rc.d"

// reportInterval is how often a long installation gives a sign of life.
const reportInterval = 15 * time.Second

// Install installs Debian packages, without their recommendations. No daemon of
// theirs is started: the package redis-server would otherwise occupy a port.
func Install(ctx context.Context, packages []string, progress io.Writer) error {
	restore, err := forbidDaemons(servicePolicy)
	if err != nil {
		return err
	}
	defer restore()
	if err := aptGet(ctx, progress, "updating the package index", "update"); err != nil {
		return err
	}
	arguments := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	return aptGet(ctx, progress, fmt.Sprintf("installing %v", packages), arguments...)
}

func aptGet(ctx context.Context, progress io.Writer, what string, arguments ...string) error {
	command := exec.CommandContext(ctx, "apt-get", arguments...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if err := builder.RunReported(command, progress, what, reportInterval); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// forbidDaemons puts a policy in place that denies every start, unless the
// machine has a policy already, and returns the function that removes it.
func forbidDaemons(path string) (restore func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("forbidding daemons to start: %w", err)
	}
	restore = func() { _ = os.Remove(path) }
	_, err = file.WriteString("#!/bin/sh\nexit 101\n")
	if err := errors.Join(err, file.Close()); err != nil {
		restore()
		return nil, fmt.Errorf("forbidding daemons to start: %w", err)
	}
	return restore, nil
}
