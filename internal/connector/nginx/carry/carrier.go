// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/internal/connector/reload"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// Config says which program is brought to ports.
type Config struct {
	nginx.Options
	// Binary of the program, which checks configurations.
	Binary string
	// User is the main configuration of the program, which includes our files by their absolute paths.
	User string
	// Arguments are further ones of the program, such as -p PREFIX; the check has them too.
	Arguments []string
	// Master returns the PID of the program's master; an error if the program does not run.
	Master func() (int, error)
	// Lines are the requests that the program tells.
	Lines *Lines
	// ReloadLossAllowed lets an nginx be older than 1.27.4, which loses requests at each reload.
	ReloadLossAllowed bool
	// Passed is told of each step that was done; nil if that is of no interest.
	Passed func(reload.Step)
}

// Carrier of one program. Only one goroutine uses it.
type Carrier struct {
	config Config
	// files are in force; nil before the first time. Old are the workers of before the last reload.
	files    *nginx.Files
	reloaded time.Time
	old      map[nginx.Worker]bool
	leavers  nginx.Leavers
	// foreign says that the program has loaded other files than these.
	foreign bool
	// capable says that the version was read.
	capable bool
}

// New carrier of a program of which nothing is known: the first time it is reloaded.
func New(c Config) *Carrier {
	if c.Passed == nil {
		c.Passed = func(reload.Step) {}
	}
	return &Carrier{config: c}
}

// Bounds of what the program is asked.
const (
	checkTime  = 30 * time.Second
	reloadTime = 15 * time.Second
	reloadLook = 20 * time.Millisecond
)

// CarryOut brings the program to ports. Without an error it has them but for the workers that are out of
// sync, of which there may be some as long as workers of before a reload live; the same ports are carried
// out again to ask for them. New endpoints wait for [nginx.EndpointPause] behind a reload, and are out of
// sync until then. After an error the same ports may be carried out again.
func (c *Carrier) CarryOut(ctx context.Context, ports []envoyxds.Port) ([]nginx.OutOfSync, error) {
	files, err := c.render(ctx, ports)
	if err != nil {
		return nil, err
	}
	if c.files == nil || c.foreign || c.files.Generation != files.Generation {
		if c.files != nil && !c.foreign {
			if wait := nginx.Wait(*c.files, files, c.reloaded, time.Now()); wait > 0 {
				return []nginx.OutOfSync{{Why: fmt.Errorf("new endpoints wait for %s", wait.Round(time.Millisecond))}}, nil
			}
		}
		if err := c.restructure(ctx, ports, files); err != nil {
			return nil, err
		}
	}
	return c.prove(ctx, ports)
}

// Prepare checks and writes the files of a program that does not run yet. The program that then starts
// is known to have loaded them. A program that still listens to the sockets of the folder is an error.
func (c *Carrier) Prepare(ctx context.Context, ports []envoyxds.Port) error {
	files, err := c.render(ctx, ports)
	if err != nil {
		return err
	}
	if err := removeStaleSocket(c.file(nginx.ProbeSocket)); err != nil {
		return err
	}
	if err := c.checkAndWrite(ctx, ports, files); err != nil {
		return err
	}
	c.files = &files
	return nil
}

// render the files for the version of the program.
func (c *Carrier) render(ctx context.Context, ports []envoyxds.Port) (nginx.Files, error) {
	if err := c.checkVersion(ctx); err != nil {
		return nginx.Files{}, err
	}
	return nginx.Render(c.config.Options, ports)
}

// checkVersion asks the program once. A version that loses requests does not know the directive of
// KeepaliveMin, and its workers keep no idle connection.
func (c *Carrier) checkVersion(ctx context.Context) error {
	if c.capable {
		return nil
	}
	said, err := c.run(ctx, "-v")
	if err != nil {
		return fmt.Errorf("asking nginx for its version: %w", err)
	}
	version, err := nginx.ParseVersion(said)
	if err != nil {
		return err
	}
	if version.LosesRequests() {
		if !c.config.ReloadLossAllowed {
			return &reload.RefusedError{Program: "nginx", At: "version", Said: said + ": a reload loses requests before version 1.27.4; allow the loss, or use a later version"}
		}
		c.config.KeepaliveMin = 0
	}
	c.capable = true
	return nil
}

// run has the program answer, and returns all that it says.
func (c *Carrier) run(ctx context.Context, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	said, err := exec.CommandContext(ctx, c.config.Binary, append(arguments, c.config.Arguments...)...).CombinedOutput() //nolint:gosec // the agent's configuration
	return strings.TrimSpace(string(said)), err
}

// restructure checks a copy, writes the files and reloads.
func (c *Carrier) restructure(ctx context.Context, ports []envoyxds.Port, files nginx.Files) error {
	if err := c.checkAndWrite(ctx, ports, files); err != nil {
		return err
	}
	err := c.reloadProgram(ctx, files)
	c.config.Passed(reload.Reloaded)
	if err != nil && c.files != nil {
		return errors.Join(err, writeFiles(c.config.Folder, *c.files))
	}
	if err != nil {
		return err
	}
	c.files, c.reloaded, c.foreign = &files, time.Now(), false
	return nil
}

// checkAndWrite leaves the files of before if the program refuses the next ones.
func (c *Carrier) checkAndWrite(ctx context.Context, ports []envoyxds.Port, files nginx.Files) error {
	if err := c.check(ctx, ports); err != nil {
		return err
	}
	c.config.Passed(reload.Checked)
	if err := writeFiles(c.config.Folder, files); err != nil {
		return err
	}
	c.config.Lines.setBackups(nginx.FindBackups(ports))
	c.config.Passed(reload.Written)
	return nil
}

// check has the program check a copy of the files with the user's own configuration as it is now.
func (c *Carrier) check(ctx context.Context, ports []envoyxds.Port) error {
	o := c.config.Options
	o.Folder = filepath.Join(o.Folder, "check")
	files, err := nginx.Render(o, ports)
	if err != nil {
		return err
	}
	if err := writeFiles(o.Folder, files); err != nil {
		return err
	}
	user, err := copyUser(c.config.User, c.config.Folder, o.Folder)
	if err != nil {
		return err
	}
	said, err := c.run(ctx, "-t", "-c", user)
	if failed, is := errors.AsType[*exec.ExitError](err); is && failed.Exited() {
		return &reload.RefusedError{Program: "nginx", At: "check", Said: strings.ReplaceAll(said, user, c.config.User)}
	}
	if err != nil {
		return fmt.Errorf("checking nginx's configuration: %w", err)
	}
	return nil
}

// reloadProgram waits until a worker has loaded the files. A master writes its reason against a reload to the log
// of the user alone.
func (c *Carrier) reloadProgram(ctx context.Context, files nginx.Files) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	pid, err := c.config.Master()
	if err != nil {
		return err
	}
	before, err := Workers(pid)
	if err != nil {
		return err
	}
	old := map[nginx.Worker]bool{}
	for _, s := range before {
		old[s.Worker] = true
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("reloading nginx: %w", err)
	}
	c.old = old // they are of before from here on, also if the wait below fails
	for {
		generation, err := probe(ctx, c.file(nginx.ProbeSocket))
		if err == nil && generation == files.Generation {
			return nil
		}
		select {
		case <-time.After(reloadLook):
		case <-ctx.Done():
			return fmt.Errorf("reloading nginx: no worker has the files after %s; the error log of nginx says why (%w)", reloadTime, errors.Join(err, ctx.Err()))
		}
	}
}

func (c *Carrier) file(name string) string { return filepath.Join(c.config.Folder, name) }

// prove asks a new connection for the generation, and each worker of before a reload whether it may still
// decide a request.
func (c *Carrier) prove(ctx context.Context, ports []envoyxds.Port) ([]nginx.OutOfSync, error) {
	generation, err := probe(ctx, c.file(nginx.ProbeSocket))
	if err != nil {
		return nil, err
	}
	if generation != c.files.Generation {
		c.foreign = true // a person has loaded other files: the next time ours are loaded again
		return []nginx.OutOfSync{{Why: fmt.Errorf("a new connection has the files %.40q", generation)}}, nil
	}
	pid, err := c.config.Master()
	if err != nil {
		return nil, err
	}
	states, err := Workers(pid)
	if err != nil {
		return nil, err
	}
	sequences := map[decision]bool{}
	for _, p := range ports {
		sequences[decision{p.Namespace, p.Service, p.Number, p.Sequence}] = true
	}
	now := time.Now()
	decided := c.config.Lines.decidedByOther(sequences, now.Add(-c.config.KeepaliveMin-time.Minute))
	late, leavers := nginx.JudgeWorkers(now, c.old, states, c.leavers, decided, c.config.KeepaliveMin)
	c.leavers = leavers
	return late, nil
}
