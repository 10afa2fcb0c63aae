// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Commit is one stored write.
type Commit struct {
	// Revision is its place in the order, which is the resourceVersion it left.
	Revision int64
	At       time.Time
	// Sent is when its request was, if that was noted.
	Sent time.Time
	// User who wrote, and Client the process.
	User, Client string
	// Method and Subresource of the request.
	Method, Subresource string
	Resource            *Resource
	Namespace, Name     string
	// Before is nil for a creation, After for a removal.
	Before, After Object
}

// Server is an API server in memory. Its methods may be called at any time by
// anybody.
type Server struct {
	now func() time.Time

	mu        sync.Mutex
	order     []*Resource
	resources map[resourceKey]*Resource
	objects   map[objectKey][]version
	revision  int64
	uids      int64
	history   []Commit
	watchers  []func(Commit)

	authorize func(Attributes) bool
	review    func(Attributes) bool
	admit     func(Attributes, Object) error
	replica   func(client string, revision int64) int64
}

type resourceKey struct{ group, version, resource string }

type objectKey struct {
	resource        *Resource
	namespace, name string
}

// version is one state of an object; without one it is gone from then on.
type version struct {
	revision int64
	object   Object
	raw      []byte
}

// answer is what the server answers with: the encoded object, as it is stored.
func (v version) answer() json.RawMessage { return v.raw }

// New is a server with some kinds, and no objects.
func New(now func() time.Time, resources ...Resource) *Server {
	s := &Server{
		now: now, resources: map[resourceKey]*Resource{}, objects: map[objectKey][]version{},
		authorize: func(Attributes) bool { return true },
		review:    func(Attributes) bool { return true },
		admit:     func(Attributes, Object) error { return nil },
		replica:   func(string, int64) int64 { return 0 },
	}
	for i := range resources {
		r := &resources[i]
		s.order = append(s.order, r)
		s.resources[resourceKey{r.Group, r.Version, r.Resource}] = r
	}
	return s
}

// Do carries a request out, whole and at once.
func (s *Server) Do(r Request) Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isReview(r) {
		return s.reviewed(r)
	}
	c, err := s.route(r)
	if err != nil {
		return s.refusal(err)
	}
	if !s.authorize(c.attributes()) {
		return s.refusal(c.forbidden())
	}
	code, body, err := s.carry(c)
	if err != nil {
		return s.refusal(err)
	}
	if raw, ok := body.(json.RawMessage); ok {
		return Response{Code: code, Date: s.now(), Body: raw}
	}
	return s.answer(code, body)
}

func (s *Server) carry(c *call) (int, any, error) {
	switch {
	case c.Query.Get("watch") != "":
		return 0, nil, c.unsupported("there are no watches here")
	case c.Method == http.MethodGet && c.name == "":
		body, err := s.list(c)
		return http.StatusOK, body, err
	case c.Method == http.MethodGet:
		body, err := s.get(c)
		return http.StatusOK, body, err
	case c.Method == http.MethodPost && c.name == "":
		body, err := s.create(c)
		return http.StatusCreated, body, err
	case c.Method == http.MethodPut && c.name != "":
		return s.put(c)
	case c.Method == http.MethodPatch && c.name != "":
		body, err := s.patch(c)
		return http.StatusOK, body, err
	case c.Method == http.MethodDelete && c.name != "" && c.subresource == "":
		body, err := s.remove(c)
		return http.StatusOK, body, err
	}
	return 0, nil, c.unsupported("the method is not supported here")
}

func (c *call) unsupported(why string) error {
	err := apierrors.NewMethodNotSupported(c.resource.groupResource(), c.Method)
	err.ErrStatus.Message += ": " + why
	return err
}

// History is every stored write, in its order. Nobody may change it.
func (s *Server) History() []Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.history)
}

// Revision is the resourceVersion of the last write.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Stale sets what a client is shown that asks for resourceVersion 0, which is any
// version that a replica has: everything up to a revision, and nothing after it.
// The replica is told the present one; zero is that.
func (s *Server) Stale(replica func(client string, revision int64) int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replica = replica
}

func (c *call) key() objectKey { return objectKey{c.resource, c.namespace, c.name} }

// current is the state of an object; without one it is not there.
func (s *Server) current(k objectKey) version {
	if versions := s.objects[k]; len(versions) > 0 {
		return versions[len(versions)-1]
	}
	return version{}
}

// asOf is the state of an object at a revision; zero is now.
func (s *Server) asOf(k objectKey, revision int64) version {
	for _, v := range slices.Backward(s.objects[k]) {
		if revision == 0 || v.revision <= revision {
			return v
		}
	}
	return version{}
}

// commit stores a state; nil removes the object.
func (s *Server) commit(c *call, before, after Object) version {
	s.revision++
	stored := version{revision: s.revision}
	if after != nil {
		after = withMeta(after, "resourceVersion", strconv.FormatInt(s.revision, 10))
		stored.object, stored.raw = after, encode(after)
	}
	k := c.key()
	s.objects[k] = append(s.objects[k], stored)
	committed := Commit{
		Revision: s.revision, At: s.now(), Sent: c.Sent, User: c.User, Client: c.Client, Method: c.Method, Subresource: c.subresource,
		Resource: c.resource, Namespace: c.namespace, Name: c.name, Before: before, After: after,
	}
	s.history = append(s.history, committed)
	for _, tell := range s.watchers {
		tell(committed)
	}
	return stored
}

func encode(o Object) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("encoding what was decoded from JSON: %v", err))
	}
	return raw
}

// newUID is like a real one, and the same in every run.
func (s *Server) newUID() string {
	s.uids++
	return fmt.Sprintf("%08x-51ab-4000-8000-%012x", s.uids, s.uids)
}

func (s *Server) stamp() string { return metav1.NewTime(s.now()).UTC().Format(time.RFC3339) }

// Watch has somebody told of every stored write, at once and while the server is
// busy with it: it may not ask the server anything.
func (s *Server) Watch(tell func(Commit)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, tell)
}

// Look returns an object as it is stored; nil when it is not there. Nobody may
// change it.
func (s *Server) Look(group, resource, namespace, name string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.order {
		if r.Group == group && r.Resource == resource {
			return s.current(objectKey{r, namespace, name}).object
		}
	}
	return nil
}
