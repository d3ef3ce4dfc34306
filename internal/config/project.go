package config

import (
	"regexp"

	"modelgate/internal/cloudhost"
)

// projectName is what a project or location of Google Cloud can be called.
var projectName = regexp.MustCompile(`^[a-z0-9:.-]{1,64}$`)

// checkProject wants a project and a location with format vertex, and fills in the
// location that the host says.
func (p *Provider) checkProject(d *document, path string) {
	if p.Format != "vertex" {
		d.faultIf(p.Project != "", path+".project", "goes with format vertex only")
		d.faultIf(p.Location != "", path+".location", "goes with format vertex only")
		return
	}
	required(d, path, "project", p.Project)
	location, known := cloudhost.Vertex(cloudhost.Of(p.BaseURL))
	switch {
	case known && p.Location == "":
		p.Location = location
	case known:
		d.faultIf(p.Location != location, path+".location", "contradicts base_url, whose host is in %s", location)
	default:
		d.faultIf(p.Location == "", path, "needs location: the host of base_url does not say it")
	}
	for name, value := range map[string]string{"project": p.Project, "location": p.Location} {
		d.faultIf(value != "" && (!projectName.MatchString(value) || value == "-" || value == "." || value == ".."), member(path, name), "want 1 to 64 of a-z, 0-9, :, . and -")
	}
	if p.Region == "" {
		p.Region = p.Location
	}
}
