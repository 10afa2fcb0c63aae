// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

var helm *rendered.Client

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	found, err := rendered.Find(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests of the chart:", err)
		os.Exit(1)
	}
	helm = found
	os.Exit(m.Run())
}

// values are what one call of Helm renders.
type values struct {
	writerPolicy bool
	args         string
}

// rendering is what Helm made of values.
type rendering struct {
	text    string
	objects []*unstructured.Unstructured
	err     error
}

// renderings has a func() rendering for each of the values that a test asked for, so
// that Helm renders them once in a run.
var renderings sync.Map

func render(t *testing.T, writerPolicy bool, args ...string) rendering {
	t.Helper()
	once, _ := renderings.LoadOrStore(values{writerPolicy, strings.Join(args, "\x00")}, sync.OnceValue(func() rendering {
		return renderNow(t, writerPolicy, args...)
	}))
	made := once.(func() rendering)()
	if made.err != nil {
		t.Fatal(made.err)
	}
	return made
}

// renderNow has Helm render values even if it has rendered them before.
func renderNow(t *testing.T, writerPolicy bool, args ...string) (made rendering) {
	t.Helper()
	call := helm.TemplateWithoutWriterPolicy
	if writerPolicy {
		call = helm.Template
	}
	if made.text, made.err = call(t.Context(), args...); made.err == nil {
		made.objects, made.err = rendered.Objects(made.text)
	}
	return made
}

// template renders with further arguments, as objects that the test may change.
func template(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	return copies(render(t, true, args...).objects)
}

// templateAgain renders anew, as a second installation would.
func templateAgain(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	made := renderNow(t, true, args...)
	if made.err != nil {
		t.Fatal(made.err)
	}
	return made.objects
}

func copies(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		out[i] = object.DeepCopy()
	}
	return out
}

// valuesFiles are the values that every assertion about all objects is made for.
func valuesFiles(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(rendered.ChartDir(), "ci", "*-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 4 {
		t.Fatalf("values files in the chart's ci directory: %v", paths)
	}
	files := map[string]string{}
	for _, path := range paths {
		files[strings.TrimSuffix(filepath.Base(path), "-values.yaml")] = path
	}
	return files
}

// forEachValuesFile runs a test on the objects of each values file.
func forEachValuesFile(t *testing.T, test func(t *testing.T, objects []*unstructured.Unstructured)) {
	for name, path := range valuesFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, template(t, "--values", path))
		})
	}
}

// find picks one object by kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range rendered.OfKind(objects, kind) {
		if object.GetName() == name {
			return object
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// convert turns an object into its type.
func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed, err := rendered.Convert[T](object)
	if err != nil {
		t.Fatal(err)
	}
	return typed
}
