package s3wire

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text, date string
		want       time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"7", "", 7 * time.Second},
		{" 7 ", "", 7 * time.Second},
		{"3600", "", time.Hour},
		{"3601", "", maxRetryAfter},
		{"99999999999999999999999", "", maxRetryAfter},
		{"-5", "", 0},
		{"+5", "", 0},
		{"1.5", "", 0},
		{"5s", "", 0},
		{"soon", "", 0},
		{"Mon, 30 Nov 2026 12:00:09 GMT", "", 9 * time.Second},
		{"Mon, 30 Nov 2026 11:00:00 GMT", "", 0},
		{"Mon, 30 Nov 2036 12:00:00 GMT", "", maxRetryAfter},
		// The store's clock is an hour behind ours: its own date counts.
		{"Mon, 30 Nov 2026 11:00:09 GMT", "Mon, 30 Nov 2026 11:00:00 GMT", 9 * time.Second},
		{"Mon, 30 Nov 2026 12:00:09 GMT", "yesterday", 9 * time.Second},
		{"Mon, 31 Feb 2026 12:00:09 GMT", "", 0},
	} {
		h := http.Header{}
		if c.text != "" {
			h.Set("Retry-After", c.text)
		}
		if c.date != "" {
			h.Set("Date", c.date)
		}
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("Retry-After %q, Date %q: %v, want %v", c.text, c.date, got, c.want)
		}
	}
	if got := RetryAfter(nil, now); got != 0 {
		t.Errorf("no header: %v", got)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "7", "-1", "99999999999999999999", "Mon, 30 Nov 2026 12:00:09 GMT", "\x00"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, text, date string) {
		h := http.Header{"Retry-After": {text}, "Date": {date}}
		if got := RetryAfter(h, time.Unix(1_800_000_000, 0)); got < 0 || got > maxRetryAfter {
			t.Errorf("%q, %q: %v", text, date, got)
		}
	})
}
