// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// What the README names, and what a machine without the internet has instead.
const (
	readmeSource   = "https://github.com/plumbline-dev/plumbline"
	readmeRegistry = "registry.example.com/plumbline"
)

// TestTheREADMELeadsToTheFirstNamedDrift pastes the commands of the first screen into a shell, from
// the clone on, and applies the guard that the README shows. The registry is a local one without TLS,
// which also has the image of Redis.
func TestTheREADMELeadsToTheFirstNamedDrift(t *testing.T) {
	if os.Getenv("PLUMBLINE_LONG") != "1" {
		t.Skip("images for two architectures take minutes; make e2e-long has the test")
	}
	s := newSomebody(t)
	source, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	u := &stranger{T: t, s: s, folder: t.TempDir(), path: s.admin.Path}
	repository, tag := u.redis(source)
	named := filepath.Join(t.TempDir(), "plumbline") // a clone gets its name
	if err := os.Symlink(source, named); err != nil {
		t.Fatal(err)
	}
	screen := fenced(t, string(text), "", "git clone")
	for _, change := range [][2]string{
		{readmeSource, "file://" + named},
		{readmeRegistry, s.registry + "/plumbline"},
		{"make release ", "make release PLAIN_HTTP=1 "},
		{"helm install ", fmt.Sprintf("helm install --plain-http --set redis.image.repository=%s --set redis.image.tag=%s ", repository, tag)},
	} {
		if !strings.Contains(screen, change[0]) {
			t.Fatalf("the first screen of the README has no %q", change[0])
		}
		screen = strings.ReplaceAll(screen, change[0], change[1])
	}
	u.shell(screen, "")

	u.path = filepath.Join(u.folder, "plumbline", "bin") + ":" + u.path
	u.shell("kubectl create namespace shop", "")
	u.shell("kubectl apply -f -", fenced(t, string(text), "yaml", "kind: SpecGuard"))
	u.shell("kubectl wait --for=condition=Ready specguard/shop -n shop --timeout=60s", "")
	u.shell("kubectl create deployment web -n shop --replicas=0 --image=registry.example.com/web:1", "")
	user := strings.TrimSpace(u.shell("kubectl auth whoami -o jsonpath={.status.userInfo.username}", ""))
	poll.Until(t, time.Minute, "the plugin names who made the deployment", func() error {
		out, err := u.run("kubectl plumbline blame deployment/web -n shop", "")
		if err == nil && !strings.Contains(out, user) {
			err = fmt.Errorf("%s is not named:\n%s", user, out)
		}
		return err
	})
}

// fenced returns the first fenced block of a language that has a text.
func fenced(t *testing.T, markdown, language, has string) string {
	t.Helper()
	for _, block := range regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatch(markdown, -1) {
		if block[1] == language && strings.Contains(block[2], has) {
			return block[2]
		}
	}
	t.Fatalf("the README has no block of %q with %q", language, has)
	return ""
}

// stranger has a terminal.
type stranger struct {
	*testing.T
	s            *somebody
	folder, path string
}

func (u *stranger) shell(script, input string) string {
	u.Helper()
	out, err := u.run(script, input)
	if err != nil {
		u.Fatalf("%s\n%v", script, err)
	}
	return out
}

func (u *stranger) run(script, input string) (string, error) {
	ctx, cancel := context.WithTimeout(u.Context(), 15*time.Minute)
	defer cancel()
	command := child.Bind(exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script))
	command.Dir, command.Stdin = u.folder, strings.NewReader(input)
	for _, setting := range os.Environ() { // without the settings of the make that runs the test
		if !strings.HasPrefix(setting, "MAKE") && !strings.HasPrefix(setting, "MFLAGS=") {
			command.Env = append(command.Env, setting)
		}
	}
	command.Env = append(command.Env, "KUBECONFIG="+u.s.admin.Kubeconfig, "PATH="+u.path+":"+os.Getenv("PATH"))
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return string(out), fmt.Errorf("%w\n%s%s", err, out, stderr.String())
	}
	return string(out), nil
}

// redis pushes the image of Redis to the registry.
func (u *stranger) redis(source string) (repository, tag string) {
	u.Helper()
	out := u.shell("make -s -C "+source+" images REGISTRY="+u.s.registry, "")
	pushed := regexp.MustCompile(`(?m)(` + regexp.QuoteMeta(u.s.registry) + `/plumbline/redis):([a-zA-Z0-9._-]+)`).FindStringSubmatch(out)
	if pushed == nil {
		u.Fatalf("no image of Redis was pushed:\n%s", out)
	}
	return pushed[1], pushed[2]
}
