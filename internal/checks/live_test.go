// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

// reply is what an API server answers to a path with its query.
type reply struct {
	code int
	body string
}

const webBody = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","uid":"u","resourceVersion":"7"},"spec":{"replicas":9007199254740993}}`

func notFound(details string) reply {
	return reply{http.StatusNotFound, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":%s}`, details)}
}

func TestALiveReadTellsAbsentFromUnreadable(t *testing.T) {
	const (
		one  = "/apis/apps/v1/namespaces/shop/deployments/web"
		none = "/apis/apps/v1/namespaces/shop/deployments?fieldSelector=metadata.name%3Dweb"
	)
	gone := notFound(`{"name":"web","group":"apps","kind":"deployments"}`)
	tests := map[string]struct {
		replies map[string]reply
		want    string // uid, version; or absent at a version
		failed  bool
	}{
		"an object": {replies: map[string]reply{one: {200, webBody}}, want: "u at 7"},
		"none":      {replies: map[string]reply{one: gone, none: {200, `{"metadata":{"resourceVersion":"12"},"items":[]}`}}, want: "absent at 12"},
		"made again in between": {
			replies: map[string]reply{one: gone, none: {200, `{"metadata":{"resourceVersion":"12"},"items":[` + webBody + `]}`}}, want: "u at 7",
		},
		"its kind is not served":        {replies: map[string]reply{one: notFound(`{}`)}, failed: true},
		"an answer of somebody else":    {replies: map[string]reply{one: {404, "404 page not found"}}, failed: true},
		"it may not be read":            {replies: map[string]reply{one: {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`}}, failed: true},
		"gone, and the list fails":      {replies: map[string]reply{one: gone, none: {500, "{}"}}, failed: true},
		"gone, and the list is no list": {replies: map[string]reply{one: gone, none: {200, "<html>"}}, failed: true},
		"an object without an end":      {replies: map[string]reply{one: {200, webBody[:60]}}, failed: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer, ok := tc.replies[r.URL.RequestURI()]
				if !ok {
					t.Errorf("asked was %s", r.URL.RequestURI())
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(answer.code)
				_, _ = w.Write([]byte(answer.body)) // the client notices
			}))
			defer server.Close()
			live, err := NewLiveObjects(&rest.Config{Host: server.URL}, testingclock.NewFakePassiveClock(epoch))
			if err != nil {
				t.Fatal(err)
			}
			reading, err := live.Read(t.Context(), kube.Resource{GVK: deployments, Plural: "deployments"}, webKey)
			if (err != nil) != tc.failed {
				t.Fatalf("the error is %v", err)
			}
			if err != nil {
				return
			}
			got := "absent at " + reading.Version
			if reading.Object != nil {
				got = string(reading.Object.UID) + " at " + reading.Version
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !reading.At.Equal(epoch) {
				t.Errorf("read at %s (-want +got):\n%s", reading.At, diff)
			}
		})
	}
}

// What is read live hashes as the watch hashes it, numbers beyond those of
// JavaScript included.
func TestALiveReadHashesAsTheWatchDoes(t *testing.T) {
	reading, err := Reading{}.decode([]byte(webBody), webKey)
	if err != nil {
		t.Fatal(err)
	}
	watched, err := kube.Decode([]byte(webBody), deployments)
	if err != nil {
		t.Fatal(err)
	}
	if reading.Object.FullHash != watched.FullHash || reading.Object.FullHash == "" {
		t.Errorf("%s and %s", reading.Object.FullHash, watched.FullHash)
	}
}

func TestWhereObjectsAreServed(t *testing.T) {
	core := kube.Resource{Plural: "configmaps"}
	core.GVK.Version = "v1"
	for want, resource := range map[string]kube.Resource{
		"/api/v1/namespaces/shop/configmaps":        core,
		"/apis/apps/v1/namespaces/shop/deployments": {GVK: deployments, Plural: "deployments"},
	} {
		if got := collection(resource, "shop"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
