// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// quoted is a name in code.
var quoted = regexp.MustCompile("`([^`]+)`")

// exempt are the kinds of objects whose names the page does not list one by one.
var exempt = []string{
	"ServiceAccount", "ClusterRoleBinding", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicyBinding", // as the object that they belong to
	"CustomResourceDefinition", // the page on kinds
	"NetworkPolicy",            // a table of their own
	"Pod",                      // helm test
}

// section of a page, from its heading to the next one.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(rendered.RepositoryDir(), "docs", "reference", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %s", page, heading)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// everything is what the chart installs with each file of values.
func everything(t *testing.T) (objects []*unstructured.Unstructured) {
	t.Helper()
	for name, path := range valuesFiles(t) {
		objects = append(objects, render(t, name != "small", "--values", path).objects...)
	}
	return objects
}

// The page left out the mesh, the gateway, the policy that denies, and a role that everybody with edit has.
func TestThePageNamesAllThatTheChartInstalls(t *testing.T) {
	rows := strings.Split(section(t, "chart.md", "Installed objects"), "\n")
	roles := section(t, "chart.md", "Roles for people")
	for _, object := range everything(t) {
		kind, name := object.GetKind(), object.GetName()
		if slices.Contains(exempt, kind) || object.GetAnnotations()["helm.sh/hook"] != "" {
			continue
		}
		if kind == "ClusterRole" && strings.Contains(roles, "`"+name+"`") {
			continue
		}
		if !slices.ContainsFunc(rows, func(row string) bool { return tellsOf(row, kind, name) }) {
			t.Errorf("the page does not name %s %s", kind, name)
		}
	}
}

// tellsOf is whether a row is about an object: its first cell has the kind and its second one the name.
func tellsOf(row, kind, name string) bool {
	cells := strings.Split(row, "|")
	if len(cells) < 4 || !strings.Contains(cells[1], kind) {
		return false
	}
	for _, match := range quoted.FindAllStringSubmatch(cells[2], -1) {
		if match[1] == name {
			return true
		}
	}
	return false
}

// Of the rights of each process, and of what they are allowed by the network, the page tells as well.
func TestThePageNamesAllRightsAndNetworkPolicies(t *testing.T) {
	rights := section(t, "chart.md", "Permissions of each process")
	files, err := filepath.Glob("testdata/rights*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.Contains(rights, filepath.ToSlash(file)) {
			t.Errorf("the page does not name %s", file)
		}
	}
	network := section(t, "chart.md", "Network policies")
	for _, policy := range rendered.OfKind(everything(t), "NetworkPolicy") {
		if component := strings.TrimPrefix(policy.GetName(), "plumbline-"); !strings.Contains(network, "| "+component+" |") {
			t.Errorf("the page does not say what NetworkPolicy %s allows", policy.GetName())
		}
	}
}

// Three kinds were missing.
func TestThePageOnKindsNamesEach(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(rendered.RepositoryDir(), "docs", "reference", "kinds.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(rendered.ChartDir(), "files", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d kinds, %v", len(files), err)
	}
	for _, file := range files {
		kind, _, _ := unstructured.NestedString(map[string]any{"spec": specOfFile(t, strings.TrimPrefix(filepath.Base(file), "plumbline.dev_"))}, "spec", "names", "kind")
		if row := "\n| [" + kind + "](#" + strings.ToLower(kind) + ") |"; !strings.Contains(string(raw), row) {
			t.Errorf("the table does not name %s", kind)
		}
	}
}

// containerPort is what the chart says of a port of a container.
type containerPort struct{ component, name string }

// Ports are in firewalls and in policies of other products.
func TestThePageNamesEachPort(t *testing.T) {
	named := map[containerPort]string{}
	for row := range strings.SplitSeq(section(t, "chart.md", "Ports"), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 6 || !strings.Contains(cells[2], "`") {
			continue
		}
		for component := range strings.SplitSeq(cells[1], ",") {
			named[containerPort{strings.TrimSpace(component), strings.Trim(cells[2], " `")}] = strings.TrimSpace(cells[3])
		}
	}
	opened := map[containerPort]bool{}
	for _, object := range rendered.OfKind(everything(t), "Deployment") {
		deployment := convert[appsv1.Deployment](t, object)
		for _, container := range deployment.Spec.Template.Spec.Containers {
			for _, port := range container.Ports {
				is := containerPort{strings.TrimPrefix(deployment.Name, "plumbline-"), port.Name}
				opened[is] = true
				cell, found := named[is]
				if !found {
					t.Errorf("the page does not name port %d (%s) of %s", port.ContainerPort, port.Name, is.component)
				}
				if number, err := strconv.Atoi(cell); err == nil && number != int(port.ContainerPort) {
					t.Errorf("the page says port %s of %s is %d, want %d", port.Name, is.component, number, port.ContainerPort)
				}
			}
		}
	}
	for is := range named {
		if !opened[is] {
			t.Errorf("no pod of %s has the port %s", is.component, is.name)
		}
	}
}
