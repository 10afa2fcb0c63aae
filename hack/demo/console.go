// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// photographer is the browser that tests use too. A demo without the browser writes no pictures, and says so.
const photographer = "chromium-headless-shell"

// openConsole starts a console that acts as a user, and prints its address. Without a user it acts as the admin.
func (s *story) openConsole(ctx context.Context, user string) (*desk, error) {
	args := []string{"kubectl", "plumbline", "console", "--no-browser"}
	if user != "" {
		args = append(args, "--as", user)
	}
	d, err := openDesk(ctx, s.admin, user)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.out, "$ %s &\n  Serving on %s\n", shown(args), d.address)
	return d, nil
}

// activate activates a policy over REST.
func (s *story) activate(ctx context.Context, d *desk, policy string) error {
	var got wire.Policy
	return s.post(ctx, d, "/api/v1/remediation/policies/"+policy+"/activate", `{"reason":"the demo goes on"}`, http.StatusOK, &got, func() string {
		return fmt.Sprintf("mode: %s, requestedBy: %s", got.Mode, got.RequestedBy)
	})
}

// post shows a POST, the status of its answer, and the part of the answer that matters.
func (s *story) post(ctx context.Context, d *desk, path, body string, want int, into any, show func() string) error {
	status, answer, err := d.send(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	if status != want {
		return fmt.Errorf("POST %s: the answer is %d, want %d: %s", path, status, want, answer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("reading the answer to POST %s: %w", path, err)
	}
	fmt.Fprintf(s.out, "> POST %s %s\n< %d %s\n", path, body, status, show())
	return nil
}

// tellEvents prints the events of the WebSocket up to the number of targets that are completed.
func (s *story) tellEvents(ctx context.Context, events <-chan wire.Event, completed int) error {
	s.say("A WebSocket on /api/v1/events has told of it meanwhile:")
	late := time.NewTimer(patience)
	defer late.Stop()
	created, count := false, 0
	for count < completed {
		select {
		case e, open := <-events:
			if !open {
				return fmt.Errorf("the WebSocket ended after %d events target.completed, want %d", count, completed)
			}
			if e.PlanID == "" {
				continue
			}
			created = created || e.Type == wire.EventPlanCreated
			if e.Type == "target.completed" {
				count++
			}
			fmt.Fprintf(s.out, "  %s  %-18s %-12s %s\n", e.Timestamp.Format(time.TimeOnly), e.Type, e.Status, e.Message)
		case <-late.C:
			return fmt.Errorf("waiting for %d events target.completed: %d came in %s", completed, count, patience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !created {
		return fmt.Errorf("the WebSocket told of no %s", wire.EventPlanCreated)
	}
	return nil
}

// refuseViewer has a viewer read the plan, and try to cancel it.
func (s *story) refuseViewer(ctx context.Context, plan string) error {
	s.say("%s has the role view. She reads the plan over the API, and cannot cancel it.", viewer)
	d, err := s.openConsole(ctx, viewer)
	if err != nil {
		return err
	}
	path := "/api/v1/remediation/plans/" + shopNamespace + "." + plan
	status, answer, err := d.send(ctx, http.MethodGet, path, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s as %s: the answer is %d: %s", path, viewer, status, answer)
	}
	if err == nil {
		fmt.Fprintf(s.out, "> GET %s\n< %d\n", path, status)
		var refusal wire.Problem
		err = s.post(ctx, d, path+"/cancel", `{"reason":"no reason"}`, http.StatusForbidden, &refusal, func() string { return refusal.Detail })
		if err == nil && refusal.Right == nil {
			err = fmt.Errorf("the refusal of %s names no right: %+v", viewer, refusal)
		}
	}
	return errors.Join(err, d.end())
}

// photograph writes two pictures of the console.
func (s *story) photograph(ctx context.Context, d *desk, plan string) error {
	program, err := exec.LookPath(photographer)
	if err != nil {
		s.say("Open the address for the console. (There are no pictures of it: %s is not installed.)", photographer)
		return nil //nolint:nilerr // the demo needs no browser
	}
	folder, err := filepath.Abs("bin/demo")
	if err != nil {
		return fmt.Errorf("finding the folder for pictures: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("creating the folder for pictures: %w", err)
	}
	s.say("The console shows the same to a person:")
	for _, page := range [][2]string{{"fleet", "/"}, {"plan", "/plans/" + shopNamespace + "/" + plan}} {
		file := filepath.Join(folder, page[0]+".png")
		if err := shoot(ctx, program, strings.Replace(d.address, "/?", page[1]+"?", 1), file); err != nil {
			return err
		}
		s.say("  bin/demo/%s.png", page[0])
	}
	return nil
}

// shoot has a browser of its own open an address of this machine, and writes the picture. The browser resolves no
// name of a host.
func shoot(ctx context.Context, program, address, file string) error {
	profile, err := os.MkdirTemp("", "plumbline-demo-")
	if err != nil {
		return fmt.Errorf("creating a profile for the browser: %w", err)
	}
	defer os.RemoveAll(profile)
	ctx, stop := context.WithTimeout(ctx, consolePatience)
	defer stop()
	cmd := exec.CommandContext(ctx, program, "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+profile, //nolint:gosec // the address is that of the console
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--window-size=1280,1000", "--hide-scrollbars", "--screenshot="+file, address)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("taking a picture of the console: %w\n%s", err, out)
	}
	picture, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(picture), "\x89PNG") {
		return errors.Join(fmt.Errorf("%s wrote no picture to %s", program, file), err)
	}
	return nil
}
