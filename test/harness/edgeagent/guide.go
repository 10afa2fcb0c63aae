// SPDX-License-Identifier: Apache-2.0

package edgeagent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// readBlock returns the first block of a page in a language, without the indentation of its fence.
func readBlock(tb testing.TB, page, language string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(rendered.RepositoryDir(), "docs", "guides", page+".md"))
	if err != nil {
		tb.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), "```"+language+"\n")
	indent := before[strings.LastIndex(before, "\n")+1:]
	block, _, ends := strings.Cut(rest, "\n"+indent+"```")
	if !begins || !ends {
		tb.Fatalf("the guide %s has no block of %s", page, language)
	}
	return strings.ReplaceAll("\n"+block, "\n"+indent, "\n")[1:] + "\n"
}

// CheckGuide checks the guide of a program: its pod is a proxy of the mesh, and its configuration divides requests
// beside an agent with its flags. change replaces the address and the folders of the configuration.
func CheckGuide(t *testing.T, program Program, change func(configuration, address, folder string) string) {
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(readBlock(t, program.Kind, "yaml")), &d); err != nil {
		t.Fatal(err)
	}
	pod := corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	ports, errs := inject.ParseLocalPorts(pod.Annotations[inject.AnnotationLocalPorts])
	if !inject.Injected(&pod) || len(ports) != 1 || len(errs) > 0 {
		t.Errorf("the pod is no proxy, or its Services are not read: %v, %v", ports, errs)
	}
	arguments := pod.Spec.InitContainers[0].Args
	end := slices.Index(arguments, "--")
	if end < 0 || end+1 >= len(arguments) || arguments[end+1] != program.Kind || arguments[0] != "--connector="+program.Kind {
		t.Fatalf("the arguments %q do not run %s", arguments, program.Kind)
	}
	more := slices.DeleteFunc(slices.Clone(arguments[1:end]), func(flag string) bool { // those of this test
		return strings.HasPrefix(flag, "--xds-servers=") || strings.HasPrefix(flag, "--node=")
	})
	configuration, flags := readBlock(t, program.Kind, program.Kind), program.Flags
	program.Configure = func(address, folder string) string { return change(configuration, address, folder) }
	program.Flags = func(a *Agent) []string { return append(flags(a), more...) }
	p := NewPlane(t)
	s := portset.Divide(portset.ByHeader, 4_000, 1, edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0))
	p.Publish(s)
	a := StartAgent(t, p, program, "")
	a.AwaitAcknowledged(1)
	a.CheckDivided(s)
}
