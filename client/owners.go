package client

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/strandline/strandline/segment"
)

// place is what one server answers for: the appends or the reads of a stream, a chain.
type place string

// anywhere is for what every server answers alike.
const anywhere place = "any"

func appendsOf(stream string) place { return place("append/" + stream) }

func readsOf(stream string) place { return place("read/" + stream) }

func chainPlace(c segment.Chain) place { return place(fmt.Sprintf("chain/%d/%d", c.Epoch, c.Shard)) }

// maxOwners bounds what is remembered; asking again costs one request.
const maxOwners = 10_000

// ownerOf is where a place was served last; "": not known.
func (c *Client) ownerOf(p place) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owners[p]
}

func (c *Client) remember(p place, base string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.owners) >= maxOwners {
		clear(c.owners)
	}
	c.owners[p] = base
}

// forgetPlace is for an answer that says that the server does not serve it any more.
func (c *Client) forgetPlace(p place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.owners, p)
}

// forgetServer is for one that does not answer: whatever it served, ask again.
func (c *Client) forgetServer(base string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.owners, func(_ place, at string) bool { return at == base })
}

// tookRows notes who has rows that may not be in the bucket yet.
func (c *Client) tookRows(base string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[base] = struct{}{}
}

// takers are the servers that acknowledged rows since they were asked for last.
func (c *Client) takers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Sorted(maps.Keys(c.took))
	clear(c.took)
	return out
}

// trusted reads the owner that a server named: rows and token go there, so it is a bare
// address, and not by a weaker scheme than the one that named it.
func trusted(owner, namedBy string) (string, error) {
	base, err := baseOf(owner)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(base)
	if err != nil || u.Path != "" {
		return "", fmt.Errorf("%w: owner %q has a path", ErrAnswer, owner)
	}
	if strings.HasPrefix(namedBy, "https://") && u.Scheme != "https" {
		return "", fmt.Errorf("%w: %s names the owner %s, which is not https: give the writers an --advertise of https", ErrAnswer, namedBy, owner)
	}
	return base, nil
}
