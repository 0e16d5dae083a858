package settings

import (
	"net/url"
	"regexp"
	"strings"
)

// secretWords are parts of names whose values nobody is shown.
var secretWords = regexp.MustCompile(`(?i)(password|passwd|secret|token|credential|apikey|api_key|access_key)`)

// nextURL is where another URL of a list begins; a comma may stand in one, too.
var nextURL = regexp.MustCompile(`,[A-Za-z][A-Za-z0-9+.-]*://`)

// pair is a keyword of a connection string with its value, quoted or not.
var pair = regexp.MustCompile(`(?i)\b([a-z_]*(?:password|passwd|secret|token)[a-z_]*)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]+)`)

// user is a name with a password before a host, of what is no URL but nearly one.
var user = regexp.MustCompile(`\b([A-Za-z0-9._~%+-]+):([^\s/@,]+)@`)

// plainName is a user's, and nothing that was written to carry more.
var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// Shown is a value without what is secret in it: "set" stands for that. Names of files that
// hold a secret are shown.
func Shown(text string) string {
	var out strings.Builder
	from := 0
	for _, at := range nextURL.FindAllStringIndex(text, -1) {
		out.WriteString(shownURL(text[from:at[0]]) + ",")
		from = at[0] + 1
	}
	out.WriteString(shownURL(text[from:]))
	return pair.ReplaceAllString(user.ReplaceAllString(out.String(), "${1}:set@"), "$1=set")
}

// shownURL also takes CLASS=URL.
func shownURL(text string) string {
	scheme := strings.Index(text, "://")
	if scheme < 0 {
		return text
	}
	head := text[:scheme]
	cut := strings.LastIndexAny(head, "= ") + 1
	u, err := url.Parse(text[cut:])
	if err != nil {
		return text[:scheme] + "://(set, and no URL)"
	}
	out := text[cut:]
	rest, query, asked := strings.Cut(out, "?")
	if u.User != nil {
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			user := "set" // with nothing behind it, it may be a token
			if _, has := u.User.Password(); has {
				user = url.User(u.User.Username()).String() + ":set"
			} else if strings.HasPrefix(u.Scheme, "postgres") && plainName.MatchString(u.User.Username()) {
				user = u.User.Username() // PostgreSQL knows no token there
			}
			rest = u.Scheme + "://" + user + rest[at:]
		}
	}
	if asked {
		fields := strings.Split(query, "&")
		for i, f := range fields {
			name, value, ok := strings.Cut(f, "=")
			if value, err := url.QueryUnescape(value); ok && (err != nil || secretWords.MatchString(name) || strings.Contains(value, "@")) {
				fields[i] = name + "=set" // also of a URL within the URL, with a user in it
			}
		}
		rest += "?" + strings.Join(fields, "&")
	}
	return text[:cut] + rest
}
