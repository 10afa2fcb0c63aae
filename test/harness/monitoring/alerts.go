// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// Alert is an alert as a sender posts it. A sender that lives posts the alert again before the alert ends.
type Alert struct {
	Labels map[string]string `json:"labels"`
	Starts time.Time         `json:"startsAt"`
	Ends   time.Time         `json:"endsAt"`
}

// PostAlerts sends alerts to Alertmanager as Prometheus does.
func (s *Server) PostAlerts(alerts ...Alert) {
	s.tb.Helper()
	s.post("/api/v2/alerts", alerts)
}

// Silence silences the alerts with a label.
func (s *Server) Silence(label, value string) {
	s.tb.Helper()
	s.post("/api/v2/silences", map[string]any{
		"matchers": []map[string]any{{"name": label, "value": value, "isRegex": false}}, "comment": "a test", "createdBy": "a test",
		"startsAt": time.Now(), "endsAt": time.Now().Add(time.Hour),
	})
}

func (s *Server) post(path string, body any) {
	s.tb.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.tb.Fatal(err)
	}
	response, err := http.Post(s.URL()+path, "application/json", bytes.NewReader(text)) //nolint:noctx // on loopback
	if err != nil {
		s.tb.Fatal(err)
	}
	_ = response.Body.Close() // the status is all
	if response.StatusCode != http.StatusOK {
		s.tb.Fatalf("POST %s: %s", path, response.Status)
	}
}
