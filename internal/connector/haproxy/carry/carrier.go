// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/internal/connector/reload"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// Config says which program is brought to ports.
type Config struct {
	haproxy.Options
	// Binary of the program, which checks configurations.
	Binary string
	// User are the configurations that the program loads before ours, in order.
	User []string
	// Master is the path of the socket of the program's master.
	Master string
	// Passed is told of each step that was done; nil if that is of no interest.
	Passed func(reload.Step)
}

// Carrier of one program. Only one goroutine uses it.
type Carrier struct {
	config Config
	// arms and files are in force; files are nil before the first time.
	arms  haproxy.Arms
	files *haproxy.Files
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
	reloadTime = 30 * time.Second
	reloadLook = 20 * time.Millisecond
)

// CarryOut brings the program to ports. Without an error it has them but for the splits of the workers
// that are out of sync, of which there may be some as long as workers of before a reload live. After an
// error it may have some, and the same ports may be carried out again.
func (c *Carrier) CarryOut(ctx context.Context, ports []envoyxds.Port) ([]haproxy.OutOfSync, error) {
	arms := haproxy.PlaceArms(c.arms, ports, c.busy(ctx))
	files, err := haproxy.Render(c.config.Options, ports, arms)
	if err != nil {
		return nil, err
	}
	if c.files == nil || c.files.Structure != files.Structure {
		err = c.restructure(ctx, ports, arms, files)
	} else {
		err = c.change(ctx, arms, files)
	}
	if err != nil {
		return nil, err
	}
	c.arms, c.files = arms, &files
	splits := haproxy.Program{Master: c.config.Master, Splits: filepath.Join(c.config.Folder, haproxy.SplitsFile)}
	entries := haproxy.Entries(ports)
	setting := splits.Set(ctx, entries)
	late, err := splits.Prove(ctx, entries)
	if err != nil {
		return late, errors.Join(setting, err)
	}
	return late, nil // a worker that did not take an entry has ended, or is out of sync
}

// Prepare checks and writes the files of a program that does not run yet. The program that then starts
// is known to have loaded them.
func (c *Carrier) Prepare(ctx context.Context, ports []envoyxds.Port) error {
	arms := haproxy.PlaceArms(nil, ports, func(haproxy.Server) bool { return false })
	files, err := haproxy.Render(c.config.Options, ports, arms)
	if err != nil {
		return err
	}
	if err := c.check(ctx, ports, arms); err != nil {
		return err
	}
	c.config.Passed(reload.Checked)
	if err := writeFiles(c.config.Folder, files); err != nil {
		return err
	}
	c.config.Passed(reload.Written)
	c.arms, c.files = arms, &files
	return nil
}

// busy says of each server whether a worker has requests in flight there. A server of which nothing is
// known is busy.
func (c *Carrier) busy(ctx context.Context) func(haproxy.Server) bool {
	inFlight := map[haproxy.Server]uint64{}
	var failed error
	workers, err := c.workers(ctx)
	for _, w := range workers {
		stats, err := w.Stats(ctx)
		failed = errors.Join(failed, err)
		for _, row := range stats {
			inFlight[haproxy.Server{Backend: row.Proxy, Name: row.Server}] += row.Sessions
		}
	}
	return func(s haproxy.Server) bool { return errors.Join(err, failed) != nil || inFlight[s] > 0 }
}

// workers are the present ones first.
func (c *Carrier) workers(ctx context.Context) ([]runtimeapi.Client, error) {
	present, old, err := runtimeapi.Client{Socket: c.config.Master}.Workers(ctx)
	var all []runtimeapi.Client
	for _, pid := range slices.Concat(present, old) {
		all = append(all, runtimeapi.Client{Socket: c.config.Master, PID: pid})
	}
	return all, err
}

// restructure checks a copy, writes the files and reloads.
func (c *Carrier) restructure(ctx context.Context, ports []envoyxds.Port, arms haproxy.Arms, files haproxy.Files) error {
	if err := c.check(ctx, ports, arms); err != nil {
		return err
	}
	c.config.Passed(reload.Checked)
	if err := writeFiles(c.config.Folder, files); err != nil {
		return err
	}
	c.config.Passed(reload.Written)
	err := c.reloadProgram(ctx)
	c.config.Passed(reload.Reloaded)
	if err != nil && c.files != nil {
		err = errors.Join(err, writeFiles(c.config.Folder, *c.files))
	}
	return err
}

// check has the program check a copy of the files beside the user's own configurations as they are now.
func (c *Carrier) check(ctx context.Context, ports []envoyxds.Port, arms haproxy.Arms) error {
	o := c.config.Options
	o.Folder = filepath.Join(o.Folder, "check")
	files, err := haproxy.Render(o, ports, arms)
	if err != nil {
		return err
	}
	if err := writeFiles(o.Folder, files); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	arguments := []string{"-c"}
	for _, file := range append(slices.Clone(c.config.User), filepath.Join(o.Folder, haproxy.ConfigFile)) {
		arguments = append(arguments, "-f", file)
	}
	said, err := exec.CommandContext(ctx, c.config.Binary, arguments...).CombinedOutput()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.Exited():
		return &reload.RefusedError{Program: "HAProxy", At: "check", Said: strings.TrimSpace(string(said))}
	case err != nil:
		return fmt.Errorf("checking HAProxy's configuration: %w", err)
	}
	return nil
}

// reloadProgram waits for the worker that has loaded the files.
func (c *Carrier) reloadProgram(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	master := runtimeapi.Client{Socket: c.config.Master}
	before, _, err := master.Workers(ctx)
	if err != nil {
		return err
	}
	if err := master.Reload(ctx); err != nil {
		if refused, is := errors.AsType[*runtimeapi.ProgramError](err); is {
			return &reload.RefusedError{Program: "HAProxy", At: "reload", Said: refused.Said}
		}
		return err
	}
	for {
		now, _, err := master.Workers(ctx)
		if err == nil && len(now) > 0 && !slices.Equal(before, now) {
			return nil
		}
		select {
		case <-time.After(reloadLook):
		case <-ctx.Done():
			return fmt.Errorf("reloading HAProxy: it has workers %v still (%w)", now, errors.Join(err, ctx.Err()))
		}
	}
}

// change writes the files and brings the servers of each worker to their slots. A worker of before a
// reload may not have them all.
func (c *Carrier) change(ctx context.Context, arms haproxy.Arms, files haproxy.Files) error {
	if err := writeFiles(c.config.Folder, files); err != nil {
		return err
	}
	workers, err := c.workers(ctx)
	if err != nil {
		return err
	}
	for i, w := range workers {
		for _, command := range c.arms.Commands(arms) {
			_, err := w.Do(ctx, strings.Fields(command)...)
			if err != nil && i == 0 {
				return err
			}
		}
	}
	return c.proveServers(ctx, arms)
}

// proveServers reads back whether the present worker has the endpoints.
func (c *Carrier) proveServers(ctx context.Context, arms haproxy.Arms) error {
	workers, err := c.workers(ctx)
	if err != nil || len(workers) == 0 {
		return errors.Join(err, errors.New("asking HAProxy: the master has no worker"))
	}
	servers, err := workers[0].Servers(ctx)
	if err == nil {
		err = arms.Compare(servers)
	}
	if err != nil {
		return fmt.Errorf("worker %d: %w", workers[0].PID, err)
	}
	return nil
}
