// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// StreamEventsID is the id of the operation of events, see [API.OperationOf].
const StreamEventsID = "stream-events"

const (
	eventsPath = Prefix + "/events"
	eventType  = "text/event-stream"
	lastEvent  = "Last-Event-ID"
)

// streamEvents is the row of the stream of events. Its answer does not end, so huma has no part in it.
func streamEvents() operation {
	return operation{
		method: http.MethodGet, path: eventsPath, id: StreamEventsID, summary: "Stream events, as server-sent events or by a WebSocket", tag: "Events",
		example: exampleOf(eventsPath, "?namespace=shop"), status: http.StatusOK, register: registerEvents,
	}
}

func registerEvents(api huma.API, op huma.Operation) {
	registry := api.OpenAPI().Components.Schemas
	op.Responses = map[string]*huma.Response{
		strconv.Itoa(http.StatusSwitchingProtocols): {Description: "A WebSocket. Each message is an Event."},
		strconv.Itoa(http.StatusOK): {
			Description: "Server-sent events. The data of each is an Event.",
			Content:     map[string]*huma.MediaType{eventType: {Schema: registry.Schema(reflect.TypeFor[wire.Event](), true, "Event")}},
		},
	}
	problem := &huma.MediaType{Schema: registry.Schema(reflect.TypeFor[wire.Problem](), true, "Problem")}
	for _, status := range statuses {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status), Content: map[string]*huma.MediaType{(&wire.Problem{}).ContentType(""): problem},
		}
	}
	text := func(name, in, means string) *huma.Param {
		return &huma.Param{Name: name, In: in, Description: means, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	op.Parameters = []*huma.Param{
		text("namespace", "query", "Events of this namespace alone; without it the caller needs the right to watch all."),
		text("since", "query", "The id of the last event that the caller has: the stream goes on behind it, and may repeat events of the minute before."),
		text(lastEvent, "header", "The same, as browsers send it."),
	}
	api.OpenAPI().AddOperation(&op)
	api.Adapter().Handle(&op, func(c huma.Context) {
		r, w := humago.Unwrap(c)
		apiOf(r.Context()).streams.serve(w, r)
	})
}

// subscription is the request of a caller for events.
type subscription struct {
	namespace string
	// last is the event that the caller has; nil for a caller who has none.
	last *events.ID
}

func subscriptionOf(r *http.Request) (*subscription, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, wire.NewProblem(wire.BadRequest, "the query is not valid")
	}
	in := &subscription{namespace: query.Get("namespace")}
	var faults []wire.FieldError
	for name, values := range query {
		if known := name == "namespace" || name == "since"; !known || len(values) > 1 {
			faults = append(faults, wire.FieldError{Location: "query." + name, Message: "the operation takes namespace and since, each once"})
		}
	}
	if in.namespace != "" && len(validation.IsDNS1123Label(in.namespace)) > 0 {
		faults = append(faults, wire.FieldError{Location: "query.namespace", Message: "no namespace can have this name"})
	}
	// A browser that connects again has the address of before, and the header is newer.
	since, location := query.Get("since"), "query.since"
	if header := r.Header.Get(lastEvent); header != "" {
		since, location = header, "header."+lastEvent
	}
	if since != "" {
		id, err := events.ParseID(since)
		if err != nil {
			faults = append(faults, wire.FieldError{Location: location, Message: err.Error()})
		}
		in.last = &id
	}
	if len(faults) > 0 {
		slices.SortFunc(faults, func(x, y wire.FieldError) int { return strings.Compare(x.Location, y.Location) })
		return nil, wire.NewProblem(wire.BadRequest, "", faults...)
	}
	return in, nil
}

// checkOrigin refuses pages of another origin: net/http lets each GET pass, and a browser opens a WebSocket to
// any host.
func checkOrigin(r *http.Request) error {
	asked := r.WithContext(r.Context())
	asked.Method = http.MethodPost
	if err := http.NewCrossOriginProtection().Check(asked); err != nil {
		return wire.NewProblem(wire.CrossOrigin, "a page of another origin sent this request")
	}
	return nil
}

// serve answers a request for events.
func (s *streams) serve(w http.ResponseWriter, r *http.Request) {
	if err := s.stream(w, r); err != nil {
		problem := ProblemOf(s.log, err)
		if problem.Status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", strconv.Itoa(int(pingInterval.Seconds())))
		}
		WriteProblem(w, problem)
	}
}

// stream returns an error while the answer has not begun.
func (s *streams) stream(w http.ResponseWriter, r *http.Request) error {
	in, err := subscriptionOf(r)
	if err != nil {
		return err
	}
	if err := checkOrigin(r); err != nil {
		return err
	}
	if r.Method != http.MethodGet { // a route of GET takes HEAD
		return wire.NewProblem(wire.BadRequest, "a stream of events takes GET")
	}
	isSocket := asksForSocket(r)
	if !isSocket && !takesEvents(r) {
		return wire.NewProblem(wire.BadRequest, "", wire.FieldError{Location: "header.Accept", Message: "the answer is " + eventType + ", or a WebSocket"})
	}
	user, err := s.identify(r.Context())
	if err != nil {
		return err
	}
	h, leave, err := s.join(r.Context(), audience{user, in.namespace})
	if err != nil {
		return err
	}
	defer leave()
	// The place is that of before the answer: a caller who has the answer hears all that happens from then on.
	l := &listening{hearing: h, namespace: in.namespace, begun: s.cluster.Now()}
	if in.last != nil {
		l.begun = time.Unix(in.last.Second, 0)
	}
	l.at, l.first = h.subscribe(in.last)
	if isSocket {
		s.serveSocket(w, r, l)
		return nil
	}
	return s.serveEvents(w, r, l)
}

func (s *streams) identify(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	user, err := s.whoami(ctx)
	return user.Username, err
}

func asksForSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

func takesEvents(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return accept == "" || slices.ContainsFunc([]string{eventType, "text/*", "*/*"}, func(media string) bool { return strings.Contains(accept, media) })
}

// sendAll sends events, of which another stream may send the same bytes.
func (s *streams) sendAll(ctx context.Context, to sink, news []events.Frame) error {
	if len(news) == 0 {
		return nil
	}
	for i := range news {
		if news[i].Type == wire.EventResync {
			s.counts.resyncs.Inc()
		}
	}
	if err := to.send(ctx, news); err != nil {
		return &sinkError{err}
	}
	return nil
}
