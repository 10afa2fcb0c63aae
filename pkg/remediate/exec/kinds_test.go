// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var baskets = canon.GVK{Group: "shop.example", Version: "v1", Kind: "Basket"}

// schemaServer serves the schema of baskets.
type schemaServer struct {
	// digest of the document, and what it says about the status.
	digest, status string
	fails          bool
	asked          []string
}

func (s *schemaServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	digest := r.URL.Query().Get("hash")
	s.asked = append(s.asked, r.URL.Path+digest)
	switch {
	case s.fails:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/openapi/v3":
		_, _ = fmt.Fprintf(w, `{"paths":{"apis/shop.example/v1":{"serverRelativeURL":"/openapi/v3/apis/shop.example/v1?hash=%s"}}}`, s.digest)
	case r.URL.Path == "/openapi/v3/apis/shop.example/v1" && digest == s.digest:
		_, _ = fmt.Fprintf(w, `{"components":{"schemas":{"Basket":{"properties":{%s},`+
			`"x-kubernetes-group-version-kind":[{"group":"shop.example","version":"v1","kind":"Basket"}]}}}}`, s.status)
	default:
		http.NotFound(w, r)
	}
}

func TestTheSchemaOfAKindIsReadAnewWhenItChanges(t *testing.T) {
	const (
		index      = "/openapi/v3"
		document   = "/openapi/v3/apis/shop.example/v1"
		conditions = `"status":{"properties":{"conditions":{}}}`
	)
	server := &schemaServer{digest: "1"}
	api := httptest.NewServer(server)
	defer api.Close()
	clock := clocktesting.NewFakePassiveClock(epoch)
	kinds, err := NewRESTKinds(&rest.Config{Host: api.URL}, clock)
	if err != nil {
		t.Fatal(err)
	}
	for _, then := range []struct {
		name   string
		after  time.Duration
		change func()
		of     canon.GVK
		want   readiness.Status
		asked  []string
	}{
		{"at first", 0, func() {}, baskets, readiness.StatusNone, []string{index, document + "1"}},
		{"for a while it is known", schemaAge - time.Second, func() { server.fails = true }, baskets, readiness.StatusNone, nil},
		{"a failure is no answer", time.Second, func() {}, baskets, readiness.StatusUnknown, []string{index}},
		{"it is not asked again at once", schemaAgain - time.Second, func() { server.fails = false }, baskets, readiness.StatusUnknown, nil},
		{"it is asked again soon", time.Second, func() {}, baskets, readiness.StatusNone, []string{index, document + "1"}},
		{"the same document is not read twice", schemaAge, func() {}, baskets, readiness.StatusNone, []string{index}},
		{"another one is", schemaAge, func() { server.digest, server.status = "2", conditions }, baskets, readiness.StatusReported, []string{index, document + "2"}},
		{"another kind has an answer of its own", 0, func() {}, canon.GVK{Group: "shop.example", Version: "v1", Kind: "Shelf"}, readiness.StatusUnknown, []string{index, document + "2"}},
		{"a group that is not served", 0, func() {}, canon.GVK{Group: "other.example", Version: "v1", Kind: "Basket"}, readiness.StatusUnknown, []string{index}},
	} {
		clock.SetTime(clock.Now().Add(then.after))
		then.change()
		server.asked = nil
		if got := kinds.Status(t.Context(), then.of); got != then.want {
			t.Errorf("%s: got %q, want %q", then.name, got, then.want)
		}
		if diff := cmp.Diff(then.asked, server.asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", then.name, diff)
		}
	}
}
