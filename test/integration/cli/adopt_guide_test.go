// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// Marks in the guide that stand above a block of commands.
const (
	// markPods: the block needs pods, and there are none here.
	markPods = "<!-- needs pods -->"
	// markRefused: the API server is to refuse it.
	markRefused = "<!-- refused -->"
)

// block is one block of commands of a guide.
type block struct {
	mark, commands string
	line           int
}

// readGuide gives the blocks in order.
func readGuide(t *testing.T, file string) []block {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	var blocks []block
	var open *block
	mark := ""
	for i, line := range strings.Split(string(content), "\n") {
		switch {
		case open != nil && line == "```":
			blocks, open, mark = append(blocks, *open), nil, ""
		case open != nil:
			open.commands += line + "\n"
		case line == "```sh":
			open = &block{mark: mark, line: i + 2}
		case strings.HasPrefix(line, "<!-- "):
			mark = line
		case line != "":
			mark = ""
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block is not closed", file, open.line)
	}
	return blocks
}

// TestAdoptingGuide_CommandsDoWhatItSays runs the commands of the guide in
// order, as a reader would. What happens around them, and what must be true
// after them, is said by a part of the command.
func TestAdoptingGuide_CommandsDoWhatItSays(t *testing.T) {
	rotation.Share(t, 3)
	g := &guide{installed: startServer(t)}
	g.prepare()
	steps := []struct {
		command       string // part of the block
		before, after func()
	}{
		{command: "helm install", after: g.chartIsInstalled},
		{command: "-o yaml > guard.yaml", after: g.guardTrustsThePipeline},
		{command: "plumbline status", before: func() { g.await("web", v1alpha1.StateInSync) }},
		{command: "accept -n shop --all", before: g.anotherPipelineWrites, after: func() { g.await("web", v1alpha1.StateInSync) }},
		{command: `"mode":"Warn"`, after: func() { g.modeIs(v1alpha1.GuardModeWarn) }},
		{command: `"mode":"Audit"`, after: func() { g.modeIs(v1alpha1.GuardModeAudit) }},
		{command: "as system:serviceaccount:ci:deployer", after: func() { g.await("web", v1alpha1.StateInSync) }},
		{command: "break-glass-reason", after: func() { g.await("web", v1alpha1.StateDrifted) }},
		{command: "accept deployment/web", after: func() { g.await("web", v1alpha1.StateInSync) }},
	}
	file := filepath.Join(rendered.RepositoryDir(), "docs", "guides", "adopting.md")
	next := 0
	for _, b := range readGuide(t, file) {
		here := next < len(steps) && strings.Contains(b.commands, steps[next].command)
		if here && steps[next].before != nil {
			steps[next].before()
		}
		g.run(b)
		if !here {
			continue
		}
		if steps[next].after != nil {
			steps[next].after()
		}
		next++
	}
	if next != len(steps) {
		t.Errorf("the guide has no block with %q, or not in this order", steps[next].command)
	}
	g.goBack(file)
}

// backCommand is a command in the line of a step that says how to take it back.
var backCommand = regexp.MustCompile("`((?:kubectl|helm) [^`]* [^`]*)`")

// goBack takes all steps back, the last one first; then admission works as if
// nothing had been there.
func (g *guide) goBack(file string) {
	g.t.Helper()
	content, err := os.ReadFile(file)
	must(g.t, err)
	var back []block
	for i, line := range strings.Split(string(content), "\n") {
		if !strings.HasPrefix(line, "Back") && !strings.HasPrefix(line, "or `") {
			continue
		}
		for _, found := range backCommand.FindAllStringSubmatch(line, -1) {
			if found[1] != "helm upgrade" {
				back = append(back, block{commands: found[1] + "\n", line: i + 1})
			}
		}
	}
	if len(back) < 6 {
		g.t.Errorf("only %d commands take a step back: %v", len(back), back)
	}
	for _, b := range slices.Backward(back) {
		g.run(b)
	}
	g.writeAs("alice", "nginx:1.30", "kubectl-edit")
	left, err := g.cluster.Kubectl(g.t.Context(), "get", "validatingadmissionpolicies,mutatingadmissionpolicies,validatingwebhookconfigurations,mutatingwebhookconfigurations",
		"-o", "name", "-l", "app.kubernetes.io/part-of=plumbline")
	must(g.t, err)
	if left != "" {
		g.t.Errorf("left after the uninstallation: %s", left)
	}
}

// guide is a reader with a cluster.
type guide struct {
	*installed
}

// prepare gives the team its namespace, a pipeline and alice, before there is
// any Plumbline, and the reader a directory and a PATH.
func (g *guide) prepare() {
	g.t.Helper()
	ctx := g.t.Context()
	for _, name := range []string{"shop", "ci"} {
		must(g.t, g.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, a := range [][2]string{{"ci", "deployer"}, {"kube-system", "horizontal-pod-autoscaler"}} {
		must(g.t, g.admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a[0], Name: a[1]}}))
	}
	// The aggregated role edit is empty without a controller manager.
	for _, part := range []string{"edit", "view"} {
		_, err := g.cluster.Kubectl(ctx, "create", "rolebinding", "editors-"+part, "-n", "shop",
			"--clusterrole=system:aggregate-to-"+part, "--user=alice", "--serviceaccount=ci:deployer")
		must(g.t, err)
	}
	must(g.t, g.as(deployer).Create(ctx, webDeployment("shop", "web"), client.FieldOwner("kubectl-client-side-apply")))
	must(g.t, os.Symlink(filepath.Join(rendered.RepositoryDir(), "charts"), filepath.Join(g.dir, "charts")))
	must(g.t, os.Mkdir(filepath.Join(g.dir, "bin"), 0o755))
	must(g.t, os.Symlink(os.Getenv("HELM"), filepath.Join(g.dir, "bin", "helm")))
}

// run carries out a block as a shell would that stops at the first error.
func (g *guide) run(b block) {
	g.t.Helper()
	if b.mark == markPods {
		g.t.Logf("line %d needs pods and is not run here: %s", b.line, strings.TrimSpace(b.commands))
		// That the command is there can be asked all the same.
		for line := range strings.Lines(b.commands) {
			g.run(block{commands: strings.TrimSpace(line) + " --help >/dev/null\n", line: b.line})
		}
		return
	}
	// No pod gets ready here, so nothing is waited for.
	commands := strings.ReplaceAll(b.commands, " --wait\n", "\n")
	script := fmt.Sprintf("cd %q\n%s", g.dir, commands)
	path := filepath.Join(g.dir, "bin") + ":" + binDir + ":" + os.Getenv("PATH")
	result, err := g.cluster.Run(g.t.Context(), []string{"bash", "-eu", "-o", "pipefail", "-c", script}, harness.WithEnv("PATH="+path))
	switch b.mark {
	case markRefused:
		if err == nil || !strings.Contains(result.Stderr, "ValidatingAdmissionPolicy 'plumbline-deny'") {
			g.t.Fatalf("line %d is not refused: %v\n%s", b.line, err, result.Output())
		}
	case "":
		if err != nil {
			g.t.Fatalf("line %d: %v", b.line, err)
		}
	default:
		g.t.Fatalf("line %d: the mark %q means nothing", b.line, b.mark)
	}
	g.t.Logf("line %d:\n%s%s", b.line, commands, result.Output())
}

// chartIsInstalled does what the pods would: it starts the assessor, with the
// rights of its service account; and lets the pipeline write once more.
func (g *guide) chartIsInstalled() {
	g.t.Helper()
	g.takeWebhooksOut()
	g.awaitStamps()
	g.assess()
	g.writeAs(deployer, "nginx:1.27.1", "pipeline")
}

func (g *guide) writeAs(user, image, manager string) {
	g.t.Helper()
	web := &appsv1.Deployment{}
	must(g.t, g.admin.Get(g.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, web))
	patch := client.MergeFrom(web.DeepCopy())
	web.Spec.Template.Spec.Containers[0].Image = image
	must(g.t, g.as(user).Patch(g.t.Context(), web, patch, client.FieldOwner(manager)))
}

// assess runs the assessor until the test ends.
func (g *guide) assess() {
	g.t.Helper()
	config := rest.CopyConfig(g.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + rendered.Namespace + ":plumbline-assessor"}
	ready, ended := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- assessor.Run(ctx, assessor.Setup{
			Config: config, Namespace: rendered.Namespace, Retention: time.Hour,
			Rules:    specguard.Config{Key: []byte("a key of the tests"), Grace: 200 * time.Millisecond},
			Registry: prometheus.NewRegistry(), Log: logr.Discard(), Clock: clock.RealClock{}, Ready: func() { close(ready) },
		})
	}()
	g.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			g.t.Errorf("the assessor ended with an error: %v", err)
		}
	})
	poll.Ready(g.t, 30*time.Second, "the assessor", ready, ended)
}

func (g *guide) await(name string, state v1alpha1.DriftState) {
	g.t.Helper()
	what := fmt.Sprintf("%s of %s", state, name)
	err := harness.Eventually(g.t.Context(), what, 30*time.Second, func(ctx context.Context) (bool, string) {
		baseline := &v1alpha1.Baseline{}
		key := client.ObjectKey{Namespace: "shop", Name: specguard.BaselineName("deployments", "apps", name)}
		if err := g.admin.Get(ctx, key, baseline); err != nil {
			return false, err.Error()
		}
		return baseline.Status.State == state && baseline.Spec.Accept == nil, fmt.Sprintf("%s %+v", baseline.Status.State, baseline.Status.Findings)
	})
	must(g.t, err)
}

func (g *guide) guardTrustsThePipeline() {
	g.t.Helper()
	content, err := os.ReadFile(filepath.Join(g.dir, "guard.yaml"))
	must(g.t, err)
	if text := string(content); !strings.Contains(text, "namespace: ci\n        name: deployer\n") || !strings.Contains(text, "mode: Audit") {
		g.t.Errorf("the proposal does not trust the pipeline:\n%s", text)
	}
}

func (g *guide) anotherPipelineWrites() {
	g.t.Helper()
	g.writeAs("system:serviceaccount:ci:other", "nginx:1.27.2", "other")
	g.await("web", v1alpha1.StateDrifted)
}

func (g *guide) modeIs(mode v1alpha1.GuardMode) {
	g.t.Helper()
	guard := &v1alpha1.SpecGuard{}
	must(g.t, g.admin.Get(g.t.Context(), client.ObjectKey{Namespace: "shop", Name: "workloads"}, guard))
	if guard.Spec.Mode != mode {
		g.t.Errorf("the guard has mode %s, not %s", guard.Spec.Mode, mode)
	}
}
