// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/test/chart/rendered"
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

// template renders with further arguments, as objects.
func template(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	out, err := helm.Template(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendered.Objects(out)
	if err != nil {
		t.Fatal(err)
	}
	return objects
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
		t.Run(name, func(t *testing.T) { test(t, template(t, "--values", path)) })
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
