// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var (
	sender     = "Plumbline <plumbline@example.com>"
	recipients = []string{"ops@example.com", "Jörg <joerg@example.com>"}
)

// renderers by name; each gives the bytes that are sent.
var renderers = map[string]func(notify.Event) ([]byte, error){
	"slack": func(e notify.Event) ([]byte, error) {
		return notify.SlackMessage(e, notify.SlackChannel{Channel: "#ops"})
	},
	"email":       func(e notify.Event) ([]byte, error) { return notify.EmailMessage(e, sender, recipients) },
	"webhook":     notify.WebhookPayload,
	"cloudevents": func(e notify.Event) ([]byte, error) { return notify.CloudEvent(e, notify.CloudEventsChannel{}) },
}

// TestRenderers_Golden: every renderer, every type of event, a hostile one and
// one that says as little as possible.
func TestRenderers_Golden(t *testing.T) {
	for name, render := range renderers {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, kind := range eventTypes {
				section(t, &b, string(kind), render, sample(kind))
			}
			section(t, &b, "hostile", render, hostile())
			section(t, &b, "bare", render, notify.Event{Type: notify.PlanCreated, Plan: notify.PlanRef{Name: "p", UID: "u"}})
			golden.Check(t, filepath.Join("testdata", name+".golden"), b.String())
		})
	}
}

func section(t *testing.T, b *strings.Builder, title string, render func(notify.Event) ([]byte, error), e notify.Event) {
	t.Helper()
	raw, err := render(e)
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, raw, "", "  ") != nil {
		pretty = *bytes.NewBuffer(raw)
	}
	fmt.Fprintf(b, "=== %s\n%s\n", title, strings.ReplaceAll(pretty.String(), "\r\n", "␍\n"))
	if text := textOf(raw); text != "" {
		fmt.Fprintf(b, "--- as text\n%s\n", text)
	}
}

// textOf is the text of a chat's message, for the eye.
func textOf(raw []byte) string {
	var m struct{ Text string }
	_ = json.Unmarshal(raw, &m) // an email is no JSON
	return m.Text
}

func TestRenderers_RefuseATypeThatTheyDoNotKnow(t *testing.T) {
	for name, render := range renderers {
		for _, kind := range []notify.EventType{"", "PlanDeleted"} {
			if _, err := render(notify.Event{Type: kind}); !errors.Is(err, notify.ErrUnknownEvent) {
				t.Errorf("%s of %q: %v", name, kind, err)
			}
		}
	}
}

// ourLink is the one thing in a chat that may be a link.
var ourLink = regexp.MustCompile(`<https://[^|<>@()*` + "`" + `]+\|Open the plan>$`)

// TestSlackMessage_NothingMentionsLinksOrFormats: what is left of the text
// without our own words is code, and holds none of the characters that could
// mean something.
func TestSlackMessage_NothingMentionsLinksOrFormats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, err := notify.SlackMessage(anyEvent(t), notify.SlackChannel{})
		if err != nil {
			t.Fatal(err)
		}
		checkChat(t, textOf(raw))
	})
}

func FuzzSlackMessage(f *testing.F) {
	f.Add("<!channel>", "@here", "`code`")
	f.Add("&lt;!channel&gt;", "http://evil.example", "\r\n> quote")
	f.Add("\xff", "\u202e", "*bold*")
	f.Fuzz(func(t *testing.T, name, user, reason string) {
		e := sample(notify.PlanFailed)
		e.Plan.Name, e.InitiatedBy, e.Reason = name, user, reason
		e.Targets = []notify.Target{{Kind: user, Name: reason, Reason: name}}
		raw, err := notify.SlackMessage(e, notify.SlackChannel{})
		if err != nil {
			t.Fatal(err)
		}
		checkChat(t, textOf(raw))
	})
}

func checkChat(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string) {
	t.Helper()
	if len(text) > 16_000 {
		t.Fatalf("%d bytes of text", len(text))
	}
	text = ourLink.ReplaceAllString(text, "")
	if strings.ContainsAny(text, "@<>") || strings.Contains(text, "://") {
		t.Fatalf("a mention or a link in %q", text)
	}
	if rest := regexp.MustCompile(`&(amp|lt|gt);`).ReplaceAllString(text, ""); strings.Contains(rest, "&") {
		t.Fatalf("an ampersand that is not escaped in %q", text)
	}
	for line := range strings.SplitSeq(text, "\n") {
		parts := strings.Split(line, "`")
		if len(parts)%2 == 0 {
			t.Fatalf("code that does not end in %q", line)
		}
		for i := 0; i < len(parts); i += 2 { // outside code
			if strings.ContainsAny(strings.TrimPrefix(parts[i], "- "), "*_~[]()#|!") {
				t.Fatalf("formatting outside code in %q", line)
			}
		}
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Fatalf("an invisible character in %q", line)
		}
	}
}

func TestSlackMessage_TellsHowManyTargetsItLeavesOut(t *testing.T) {
	long := make([]notify.Target, 12)
	for i := range long {
		long[i] = notify.Target{Kind: strings.Repeat("&", 63), Namespace: strings.Repeat("&", 63), Name: strings.Repeat("&", 253), Reason: strings.Repeat("&", 200)}
	}
	cases := map[string]struct {
		total   int
		targets []notify.Target
		want    string
	}{
		"all are listed":                   {1, []notify.Target{{Name: "a"}}, "- `object a`"},
		"one more than is listed":          {2, []notify.Target{{Name: "a"}}, "- and 1 more"},
		"more than may be listed":          {40, make([]notify.Target, 12), "- and 30 more"},
		"a count below what is listed":     {0, make([]notify.Target, 12), "- and 2 more"},
		"targets that are too long to fit": {12, long, "- and 7 more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw, err := notify.SlackMessage(notify.Event{Type: notify.PlanCreated, Counts: notify.Counts{Total: tc.total}, Targets: tc.targets}, notify.SlackChannel{})
			if err != nil {
				t.Fatal(err)
			}
			text := textOf(raw)
			if last := text[strings.LastIndex(text, "\n")+1:]; last != tc.want {
				t.Errorf("the last line is %q, want %q", last, tc.want)
			}
		})
	}
}

// TestEmailMessage_AnyReaderUnderstandsIt: parsed by the standard library, it has
// the headers that we wrote and no other, and lines that every server takes.
func TestEmailMessage_AnyReaderUnderstandsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		raw, err := notify.EmailMessage(e, sender, recipients)
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) > 120_000 {
			t.Fatalf("%d bytes", len(raw))
		}
		for line := range strings.SplitSeq(string(raw), "\r\n") {
			if len(line) > 998 || strings.ContainsAny(line, "\r\n\x00") {
				t.Fatalf("a line that servers refuse (RFC 5322 2.1.1): %q", line)
			}
			if strings.ContainsFunc(line, func(r rune) bool { return r > unicode.MaxASCII }) {
				t.Fatalf("a line that is not ASCII: %q", line)
			}
		}
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]int{}
		for name, values := range m.Header {
			names[name] = len(values)
		}
		want := map[string]int{
			"From": 1, "To": 1, "Subject": 1, "Date": 1, "Message-Id": 1, "References": 1, "Auto-Submitted": 1,
			"Mime-Version": 1, "Content-Type": 1, "Content-Transfer-Encoding": 1,
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Fatalf("headers (-want +got):\n%s", diff)
		}
		if subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil || strings.ContainsAny(subject, "\r\n") {
			t.Fatalf("subject %q: %v", subject, err)
		}
		text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		if err != nil || strings.Contains(string(text), "://") && e.Bounded().Link == "" {
			t.Fatalf("text %q: %v", text, err)
		}
	})
}

func TestEmailMessage_HeadersOfAnOrdinaryOne(t *testing.T) {
	parse := func(e notify.Event) *mail.Message {
		raw, err := notify.EmailMessage(e, sender, recipients)
		if err != nil {
			t.Fatal(err)
		}
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	e := sample(notify.PlanFailed)
	m, again, created := parse(e), parse(e), parse(sample(notify.PlanCreated))
	if diff := cmp.Diff(m.Header, again.Header); diff != "" {
		t.Errorf("the second attempt differs (-first +second):\n%s", diff)
	}
	if got, want := m.Header.Get("Message-ID"), "<"+e.ID()+"@example.com>"; got != want {
		t.Errorf("message id %s, want %s", got, want)
	}
	if m.Header.Get("References") != created.Header.Get("References") || m.Header.Get("Message-ID") == created.Header.Get("Message-ID") {
		t.Error("two messages about one plan are not two messages in one thread")
	}
	to, err := m.Header.AddressList("To")
	if err != nil || len(to) != 2 || to[1].Name != "Jörg" {
		t.Errorf("recipients %v, %v", to, err)
	}
	if at, err := m.Header.Date(); err != nil || !at.Equal(e.Time) {
		t.Errorf("date %s, %v", at, err)
	}
}

func TestEmailMessage_RefusesAddressesThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ from, to string }{
		"no sender":                   {"", "a@example.com"},
		"a recipient with a header":   {"a@example.com", "b@example.com\r\nBcc: c@example.com"},
		"a sender with a second line": {"a@example.com\r\nBcc: c@example.com", "b@example.com"},
	} {
		if raw, err := notify.EmailMessage(sample(notify.PlanFailed), c.from, []string{c.to}); err == nil {
			t.Errorf("%s: rendered as %q", name, raw)
		}
	}
}

// TestCloudEvent_KeepsTheRules of CloudEvents 1.0: context attributes, type
// system, JSON format, size.
func TestCloudEvent_KeepsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		source := rapid.SampledFrom([]string{"", "https://plumbline.example.com/clusters/eu-1", "/clusters/eu-1"}).Draw(t, "source")
		raw, err := notify.CloudEvent(e, notify.CloudEventsChannel{Source: source})
		if err != nil {
			t.Fatal(err)
		}
		checkCloudEvent(t, raw)
	})
}

func checkCloudEvent(t *rapid.T, raw []byte) {
	if len(raw) > 64<<10 {
		t.Fatalf("%d bytes: intermediaries must forward 64 KiB, not more", len(raw))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	attributes := map[string]string{}
	for name, value := range members {
		if name == "data" {
			continue
		}
		if !regexp.MustCompile(`^[a-z0-9]{1,20}$`).MatchString(name) {
			t.Errorf("attribute %q: lower-case letters and digits", name)
		}
		var s string
		if err := json.Unmarshal(value, &s); err != nil || s == "" {
			t.Errorf("attribute %q is %s: a string that is not empty", name, value)
		}
		for _, r := range s {
			if r <= 0x1f || r >= 0x7f && r <= 0x9f || r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef {
				t.Errorf("attribute %q holds %U, which the type String forbids", name, r)
			}
		}
		attributes[name] = s
	}
	for _, required := range []string{"id", "source", "specversion", "type"} {
		if attributes[required] == "" {
			t.Errorf("%s is required", required)
		}
	}
	if attributes["specversion"] != "1.0" || !strings.HasPrefix(attributes["type"], "dev.plumbline.") {
		t.Errorf("specversion %q, type %q", attributes["specversion"], attributes["type"])
	}
	if _, err := url.Parse(attributes["source"]); err != nil {
		t.Errorf("source: %v", err)
	}
	if _, err := time.Parse(time.RFC3339, attributes["time"]); err != nil {
		t.Errorf("time: %v", err)
	}
	if kind, _, err := mime.ParseMediaType(attributes["datacontenttype"]); err != nil || kind != "application/json" || !json.Valid(members["data"]) {
		t.Errorf("datacontenttype %q, %v", attributes["datacontenttype"], err)
	}
}

// TestPayloads_SayTheSame: a webhook and a CloudEvent carry the same data, which
// says what the event says.
func TestPayloads_SayTheSame(t *testing.T) {
	for _, kind := range eventTypes {
		e := sample(kind)
		var webhook, cloud struct {
			Type, ID  string
			Timestamp time.Time
			Data      map[string]any
		}
		for raw, into := range map[string]any{must(t)(notify.WebhookPayload(e)): &webhook, must(t)(notify.CloudEvent(e, notify.CloudEventsChannel{})): &cloud} {
			if err := json.Unmarshal([]byte(raw), into); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(webhook.Data, cloud.Data); diff != "" {
			t.Errorf("%s: data (-webhook +CloudEvent):\n%s", kind, diff)
		}
		if webhook.Data["id"] != e.ID() || cloud.ID != e.ID() || !webhook.Timestamp.Equal(e.Time) {
			t.Errorf("%s: ids %v and %s, time %s", kind, webhook.Data["id"], cloud.ID, webhook.Timestamp)
		}
		prefix := "dev.plumbline.remediation."
		switch {
		case isAboutRelease(kind):
			prefix = "dev.plumbline.delivery."
		case isAboutDrift(kind):
			prefix = "dev.plumbline.guard."
		}
		if want := prefix + webhook.Type; cloud.Type != want {
			t.Errorf("%s: types %q and %q", kind, webhook.Type, cloud.Type)
		}
	}
}

func must(t *testing.T) func([]byte, error) string {
	return func(raw []byte, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
}

func TestEvent_LinksThatAreNotPlainHTTPSAreLeftOut(t *testing.T) {
	cases := map[string]struct{ link, want string }{
		"https":                              {"https://c.example/plans?a=b&c=d#x", "https://c.example/plans?a=b&c=d#x"},
		"parentheses are encoded":            {"https://c.example/(a)*'", "https://c.example/%28a%29%2A%27"},
		"an at sign in the path is encoded":  {"https://c.example/@channel", "https://c.example/%40channel"},
		"http":                               {"http://c.example/", ""},
		"javascript":                         {"javascript:alert(1)", ""},
		"no host":                            {"https:///x", ""},
		"a user, as in a phishing address":   {"https://c.example@evil.example/", ""},
		"the end of Slack's link":            {"https://c.example/|x>", ""},
		"a space":                            {"https://c.example/a b", ""},
		"a line break":                       {"https://c.example/\r\nx", ""},
		"a letter that is not ASCII":         {"https://c.exämple/", ""},
		"more than 1,024 characters":         {"https://c.example/" + strings.Repeat("a", 1024), ""},
		"no URL at all":                      {"%zz", ""},
		"nothing":                            {"", ""},
		"an escape that ends in the middle":  {"https://c.example/%4", ""},
		"a quotation mark ends an attribute": {`https://c.example/"x`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (notify.Event{Link: tc.link}).Bounded().Link; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
