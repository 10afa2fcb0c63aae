// SPDX-License-Identifier: Apache-2.0

//go:build integration

package skew

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// components are the servers of an installation, each with its program.
var components = map[string]string{"webhook": "webhook", "assessor": "assessor", "executor": "assessor", "xds": "xds"}

// elsewhere are the arguments of the chart for parts that have another place here.
var elsewhere = []string{
	"--namespace=", "--port=", "--address=", "--metrics-address=", "--health-address=", "--pod-name=", "--peer-token-file=",
	"--inject-config=", "--injection-configuration=", "--digest-key-file=", "--evidence=", "--evidence-key-file=", "--leader-elect=", "--certificate-settle=",
}

// servers are the processes of a release, with the port of the webhook.
type servers struct {
	w         *world
	binaries  string
	arguments map[string][]string
	hookPort  int
	running   map[string]*server.Process
}

// prepareServers reads the arguments that the installed release has for its servers.
func (w *world) prepareServers(binaries string) *servers {
	w.t.Helper()
	s := &servers{w: w, binaries: binaries, arguments: map[string][]string{}, hookPort: freeport.For(w.t), running: map[string]*server.Process{}}
	files := w.writeKeys()
	for component := range components {
		var deployment appsv1.Deployment
		key := client.ObjectKey{Namespace: rendered.Namespace, Name: "plumbline-" + component}
		must(w.t, w.cluster.Admin.Get(w.t.Context(), key, &deployment))
		arguments := slices.DeleteFunc(deployment.Spec.Template.Spec.Containers[0].Args, func(argument string) bool {
			return slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(argument, prefix) })
		})
		kubeconfig := filepath.Join(w.t.TempDir(), component)
		account := "system:serviceaccount:" + rendered.Namespace + ":plumbline-" + component
		must(w.t, apiserver.Enrol(w.server, kubeconfig, account, "system:serviceaccounts", "system:serviceaccounts:"+rendered.Namespace))
		arguments = append(arguments, "--kubeconfig="+kubeconfig, "--namespace="+rendered.Namespace)
		s.arguments[component] = append(arguments, s.placeArguments(component, files)...)
	}
	return s
}

// placeArguments returns the arguments for the ports and files of a component.
func (s *servers) placeArguments(component, files string) []string {
	switch component {
	case "webhook":
		return []string{"--port=" + strconv.Itoa(s.hookPort), "--server-names=127.0.0.1", "--drain-delay=0s", "--certificate-settle=1s"}
	case "assessor":
		return []string{"--digest-key-file=" + filepath.Join(files, "digest.key"), "--leader-elect=false"}
	case "executor":
		return []string{"--evidence=file://" + filepath.Join(files, "records"), "--evidence-key-file=" + filepath.Join(files, "key.pem"), "--leader-elect=false"}
	default:
		return []string{"--address=" + freeport.Address(s.w.t), "--server-names=127.0.0.1", "--drain-delay=0s", "--admin-address=", "--certificate-settle=1s"}
	}
}

// writeKeys writes the keys of the assessor and the executor.
func (w *world) writeKeys() (directory string) {
	w.t.Helper()
	directory = w.t.TempDir()
	private, _, err := evidence.GenerateKey()
	must(w.t, err)
	must(w.t, errors.Join(
		os.WriteFile(filepath.Join(directory, "digest.key"), []byte("a digest key of the tests"), 0o600),
		os.WriteFile(filepath.Join(directory, "key.pem"), private, 0o600),
		os.Mkdir(filepath.Join(directory, "records"), 0o750),
	))
	return directory
}

// startAll starts the servers, and waits until each is ready and the API server calls the
// webhook. The servers end with the test at the latest.
func (s *servers) startAll() {
	s.w.t.Helper()
	for component, program := range components {
		p, err := server.Start(filepath.Join(s.binaries, program), s.arguments[component]...)
		must(s.w.t, err)
		s.running[component] = p
	}
	s.w.t.Cleanup(s.stopAll)
	ctx, cancel := context.WithTimeout(s.w.t.Context(), patience)
	defer cancel()
	for _, p := range s.running {
		must(s.w.t, p.Ready(ctx))
	}
	s.w.callWebhookAt(s.hookPort)
}

// keepThrough has the servers run on while Helm changes the release.
func (s *servers) keepThrough(change func()) {
	s.w.t.Helper()
	s.w.callWebhookAtService()
	change()
	s.w.callWebhookAt(s.hookPort)
}

// stopAll ends the servers that run.
func (s *servers) stopAll() {
	s.w.t.Helper()
	for component, p := range s.running {
		if err := p.Stop(); err != nil {
			s.w.t.Error(err)
		}
		if s.w.t.Failed() {
			s.w.t.Logf("the %s logged:\n%s", component, lastLines(p.Said(), 15))
		}
	}
	clear(s.running)
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// buildPresent builds the servers of the present release.
func buildPresent(t *testing.T) (directory string) {
	t.Helper()
	directory = t.TempDir()
	must(t, server.Build(t.Context(), directory, "webhook", "assessor", "xds"))
	return directory
}
