// SPDX-License-Identifier: Apache-2.0

//go:build lifecycle

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/test/harness"
)

// The next release: chart and binaries under other versions. Its binaries carry
// no version control stamp, which makes them other ones by plumbline_build_info.
const (
	nextVersion = "0.999.0"
	nextTag     = "next"
	registry    = "docker.io/plumbline"
)

// nextValues name the next release's images; Redis stays as it is.
var nextValues = []string{"--set", "image.registry=" + registry, "--set", "image.tag=" + nextTag, "--set", "redis.image.tag=dev"}

// nextChart is the next release's chart, once it has been packaged.
var nextChart string

// packageNext builds the next release, loads its images and returns its chart.
func packageNext(t *testing.T) string {
	t.Helper()
	if nextChart != "" {
		return nextChart
	}
	const dir = "bin/lifecycle"
	t.Setenv("CGO_ENABLED", "0") // images hold static binaries alone
	ctx := t.Context()
	must(t, harness.Call(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s", "-o", dir+"/", "./cmd/webhook", "./cmd/assessor", "./cmd/xds", "./cmd/redirect"))
	for _, name := range []string{"webhook", "assessor", "xds", "redirect"} {
		archive := filepath.Join(dir, name+".tar")
		must(t, harness.Call(ctx, "bin/cluster", "image", "build", "--name", name, "--binary", filepath.Join(dir, name),
			"--tag", registry+"/"+name+":"+nextTag, "--out", archive))
		must(t, harness.Call(ctx, "bin/cluster", "load", "--name", clusterName, archive))
	}
	helm(t, "package", "charts/plumbline", "--version", nextVersion, "--app-version", nextVersion, "--destination", dir)
	nextChart = filepath.Join(dir, "plumbline-"+nextVersion+".tgz")
	return nextChart
}

func helm(t *testing.T, args ...string) string {
	t.Helper()
	result, err := cluster.Run(t.Context(), append(append([]string{"helm"}, args...), "-n", systemNamespace))
	must(t, err)
	return result.Output()
}

// runs says which image and chart the webhook's pods are of.
func runs(t *testing.T) string {
	t.Helper()
	var saw []string
	list, err := kube.CoreV1().Pods(systemNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: webhookPods})
	must(t, err)
	for _, pod := range list.Items {
		saw = append(saw, pod.Spec.Containers[0].Image+" of "+pod.Labels["app.kubernetes.io/version"])
	}
	return strings.Join(saw, ", ")
}

func TestAnUpgradeOfChartAndBinariesLosesNoCall(t *testing.T) {
	chart := packageNext(t)
	if strings.Contains(runs(t), ":"+nextTag) { // left so by a run before
		helm(t, "upgrade", "plumbline", "charts/plumbline", "--reuse-values", "--set", "image.tag=dev", "--wait", "--timeout=3m")
	}
	before := runs(t)
	s := newStream(t, "upgrade")
	helm(t, append([]string{"upgrade", "plumbline", chart, "--reuse-values", "--wait", "--timeout=3m"}, nextValues...)...)
	bothAnswer(t, awaitPods(t, 2))
	if after := runs(t); after == before || strings.Count(after, ":"+nextTag) != 2 {
		t.Errorf("before the upgrade there ran %s, after it %s", before, after)
	}
	fmt.Printf("    %s: from %s to %s\n", t.Name(), before, runs(t))
	s.finishGraceful()
}

func TestAnUpgradeThatFailsIsRolledBackAndLosesNoCall(t *testing.T) {
	before := runs(t)
	s := newStream(t, "failed")
	_, err := cluster.Run(t.Context(), []string{
		"helm", "upgrade", "plumbline", "charts/plumbline", "-n", systemNamespace, "--reuse-values",
		"--set", "image.tag=no-such-image", "--set", "redis.image.tag=dev", "--rollback-on-failure", "--timeout=30s",
	})
	var failed *harness.CommandError
	if !errors.As(err, &failed) || !strings.Contains(failed.Output(), "rolled back") {
		t.Errorf("an upgrade to an image that does not exist: %v", err)
	}
	awaitPods(t, 2)
	kubectl(t, "rollout", "status", deployment, "--timeout=4m")
	if after := runs(t); after != before {
		t.Errorf("before the upgrade there ran %s, after it %s", before, after)
	}
	s.finishGraceful()
}

func TestUninstallAndReinstallLoseNoCallAndWhatWasWrittenBetweenIsFound(t *testing.T) {
	chart := packageNext(t)
	q := newQuiet(t)
	s := newStream(t, "uninstall")
	helm(t, "uninstall", "plumbline", "--wait", "--timeout=4m")
	awaitPods(t, 0)
	nothingRegistered(t)
	dead := s.counts()
	q.foreignWrite()
	q.create("unseen")
	s.more(5 * rate)
	if window := s.counts().minus(dead); window != (counts{}) {
		t.Errorf("without a registration the API server counts %+v", window)
	}
	helm(t, append([]string{"install", "plumbline", chart, "--wait", "--timeout=3m"}, nextValues...)...)
	awaitPods(t, 2)
	stamped(t)
	_, unstamped := s.driver.Answered()
	s.more(5 * rate)
	if _, now := s.driver.Answered(); now != unstamped {
		t.Errorf("after the reinstallation %d calls came back unstamped", now-unstamped)
	}
	s.finish()
	// Nobody stamps a writer while the policy is gone: the stamp still names the
	// admin, who is trusted, and it was alice.
	q.found("changed", "unseen")
}

// nothingRegistered holds that no webhook of ours is left.
func nothingRegistered(t *testing.T) {
	t.Helper()
	out, err := cluster.Kubectl(t.Context(), "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations,mutatingadmissionpolicies", "-o", "name")
	must(t, err)
	if strings.Contains(out, "plumbline") {
		t.Errorf("after the uninstallation there are:\n%s", out)
	}
}

// stamped waits until a dry run comes back stamped. The webhook is ready before
// the API server's connections and endpoints have followed.
func stamped(t *testing.T) {
	t.Helper()
	eventually(t, "a stamp", func(ctx context.Context) (bool, string) {
		out, err := cluster.Kubectl(ctx, "create", "deployment", "probe", "--image=registry.invalid/app:v0", "--replicas=0",
			"-n", quietNamespace, "--dry-run=server", "-o", `jsonpath={.metadata.annotations.plumbline\.dev/spec-hash}`)
		return err == nil && strings.HasPrefix(out, "pl1:"), fmt.Sprint(out, err)
	})
}
