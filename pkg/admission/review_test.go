// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"
)

func TestDecodingIsWhatTheAPIServerMeant(t *testing.T) {
	reviews := map[string]*Review{
		"update": update(alice, deployment(t, image("x:2")), deployment(t)),
		"create": create(alice, deployment(t)),
		"delete": deletion(alice, deployment(t)),
		"scale":  scale(t, alice, 1, 2),
		"quoted names": func() *Review {
			r := update("al\"ice\\ \u00e9\U0001F600", deployment(t), nil)
			r.FieldManager, r.Name = "a\tb", "<web>&"
			return r
		}(),
		"braces and quotes inside of strings": update(alice, deployment(t, image(`}]"\`), set("metadata.labels.x", `\"}{[`)), deployment(t)),
		"dry run":                             func() *Review { r := create(alice, deployment(t)); r.DryRun = true; return r }(),
	}
	for name, want := range reviews {
		t.Run(name, func(t *testing.T) {
			got, err := decodeReview(envelope(t, want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodingRefuses(t *testing.T) {
	good := string(envelope(t, create(alice, deployment(t))))
	tests := map[string]struct {
		body string
		want error
	}{
		"nothing":              {"", ErrMalformed},
		"an array":             {"[]", ErrMalformed},
		"half a review":        {good[:len(good)/2], ErrMalformed},
		"trailing data":        {good + "{}", ErrMalformed},
		"a key twice":          {strings.Replace(good, `"dryRun":false`, `"dryRun":false,"dryRun":true`, 1), ErrMalformed},
		"another version":      {strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), errVersion},
		"another kind":         {strings.Replace(good, "AdmissionReview", "Review", 1), errVersion},
		"no request":           {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, ErrMalformed},
		"no uid":               {strings.Replace(good, `"uid":"r-1"`, `"uid":""`, 1), ErrMalformed},
		"a number for a user":  {strings.Replace(good, `"username":"alice"`, `"username":1`, 1), ErrMalformed},
		"a number for a name":  {strings.Replace(good, `"name":"web","namespace"`, `"name":1,"namespace"`, 1), ErrMalformed},
		"brackets without end": {`{"kind":` + strings.Repeat("[", 1<<20), ErrMalformed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.body == good {
				t.Fatal("the case is the good review")
			}
			if _, err := decodeReview([]byte(tc.body)); !errors.Is(err, tc.want) {
				t.Errorf("err %v, want %v", err, tc.want)
			}
		})
	}
	if r, _ := decodeReview([]byte(good[:strings.Index(good, `"namespace":"shop"`)+3])); r.UID != "" && r.UID != "r-1" {
		t.Errorf("uid of a cut review: %q", r.UID)
	}
}

// FuzzDecodeReview compares with the decoder and the type of Kubernetes: what
// both can read they read alike.
func FuzzDecodeReview(f *testing.F) {
	for _, r := range []*Review{create(alice, deployment(f)), deletion(ci, deployment(f)), scale(f, hpa, 1, 2)} {
		f.Add(envelope(f, r))
	}
	f.Add([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"\u0061","object":{"a":"\\\""}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeReview(body)
		if err != nil {
			return
		}
		var want admissionv1.AdmissionReview
		if kjson.UnmarshalCaseSensitivePreserveInts(body, &want) != nil || want.Request == nil {
			return // The scanner leaves what it skips unchecked; the objects are parsed later.
		}
		if got.UID != string(want.Request.UID) || got.Name != want.Request.Name || got.Namespace != want.Request.Namespace ||
			got.User != want.Request.UserInfo.Username || got.DryRun != ptr.Deref(want.Request.DryRun, false) ||
			got.Operation != want.Request.Operation || got.Kind != schema.GroupVersionKind(want.Request.Kind) {
			t.Errorf("got %+v\nwant %+v", got, want.Request)
		}
		if got.Object != nil && string(got.Object) != string(want.Request.Object.Raw) {
			t.Errorf("object %s, want %s", got.Object, want.Request.Object.Raw)
		}
	})
}

func TestTheCorpusIsCommitted(t *testing.T) {
	files, err := filepath.Glob("testdata/fuzz/FuzzDecodeReview/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, f := range files {
		if raw, err := os.ReadFile(f); err != nil || !strings.HasPrefix(string(raw), "go test fuzz v1") {
			t.Errorf("%s is no corpus file (%v)", f, err)
		}
	}
}
