package simulator

import "net/http"

// defaultSeconds is the length of a video of DashScope or Ark that was not
// asked to have one; arkTokens is what a second of it costs.
const (
	defaultSeconds = 5
	arkTokens      = 1000
)

// length is how long a film is made that was asked to have the length in a
// member; a request without one gets the usual length, and one with a length
// that no film has is refused.
func length(f fields, member string, usual float64) (seconds float64, ok bool) {
	if f[member] == nil {
		return usual, true
	}
	const longest = 60
	n := f.number(member)
	return n, n >= 1 && n <= longest
}

// createTask makes a task of DashScope, which insists on being asked for one.
func (p *Provider) createTask(c *call) answer {
	if c.r.Header.Get("X-DashScope-Async") != "enable" {
		return c.fail(http.StatusForbidden, "current user api does not support synchronous calls.")
	}
	seconds, ok := length(c.fields.object("parameters"), "duration", defaultSeconds)
	if !ok {
		return c.fail(http.StatusBadRequest, "the parameter duration is invalid")
	}
	j := p.createJob(c, "", seconds)
	return jsonAnswer(object{"request_id": p.id(c, ""), "output": object{"task_id": j.id, "task_status": "PENDING"}})
}

func taskStatus(j job) string {
	switch j.status {
	case jobQueued:
		return "PENDING"
	case jobRunning:
		return "RUNNING"
	case jobSucceeded:
		return "SUCCEEDED"
	case jobFailed:
		return "FAILED"
	case jobCancelled:
		return "CANCELED"
	}
	return "UNKNOWN"
}

// taskTime is how DashScope writes a moment.
const taskTime = "2006-01-02 15:04:05.000"

func (p *Provider) pollTask(c *call) answer {
	j, ok := p.jobs.poll(c.arg, p.opts.Now())
	if !ok {
		return jsonAnswer(object{"request_id": p.id(c, ""), "output": object{"task_id": c.arg, "task_status": "UNKNOWN"}})
	}
	c.sawJob(j)
	output := object{"task_id": j.id, "task_status": taskStatus(j), "submit_time": j.created.UTC().Format(taskTime)}
	reply := object{"request_id": p.id(c, ""), "output": output}
	switch j.status {
	case jobSucceeded:
		output["end_time"], output["orig_prompt"] = j.finished.UTC().Format(taskTime), j.prompt
		output["video_url"] = fileURL(c.r, j.id+".mp4")
		reply["usage"] = object{"duration": j.seconds, "output_video_duration": j.seconds, "video_count": 1, "SR": 720}
		return jsonAnswer(reply).withUsage(c)
	case jobFailed:
		output["code"], output["message"] = "InternalError", "The job was told to end like this."
	}
	return jsonAnswer(reply)
}

func (p *Provider) cancelTask(c *call) answer {
	j, ok := p.jobs.cancel(c.arg, p.opts.Now())
	if !ok {
		return c.fail(http.StatusNotFound, "the task does not exist")
	}
	c.sawJob(j)
	if j.status != jobCancelled {
		return c.fail(http.StatusBadRequest, "the task is no longer pending")
	}
	return jsonAnswer(object{"request_id": p.id(c, "")})
}

func (p *Provider) createArk(c *call) answer {
	if c.served.Model == "" {
		return c.fail(http.StatusBadRequest, "the parameter model is missing")
	}
	seconds, ok := length(c.fields, "duration", defaultSeconds)
	if !ok {
		return c.fail(http.StatusBadRequest, "the parameter duration is invalid")
	}
	j := p.createJob(c, "cgt-", seconds)
	return jsonAnswer(object{"id": j.id})
}

func (p *Provider) pollArk(c *call) answer {
	j, ok := p.jobs.poll(c.arg, p.opts.Now())
	if !ok {
		return c.fail(http.StatusNotFound, "the task does not exist")
	}
	c.sawJob(j)
	reply := object{"id": j.id, "model": j.model, "status": j.status, "error": nil, "created_at": j.created.Unix(), "updated_at": p.opts.Now().Unix()}
	switch j.status {
	case jobSucceeded:
		t := c.plain(0, int64(j.seconds*arkTokens))
		reply["content"] = object{"video_url": fileURL(c.r, j.id+".mp4")}
		reply["usage"] = object{"completion_tokens": t.output, "total_tokens": t.output}
		reply["duration"] = j.seconds
		return jsonAnswer(reply).withUsage(c)
	case jobFailed:
		reply["error"] = object{"code": "InternalServiceError", "message": "The job was told to end like this."}
	}
	return jsonAnswer(reply)
}

// deleteArk cancels a queued task, refuses for a running one, and forgets one
// that has ended.
func (p *Provider) deleteArk(c *call) answer {
	j, ok := p.jobs.cancel(c.arg, p.opts.Now())
	if !ok {
		return c.fail(http.StatusNotFound, "the task does not exist")
	}
	c.sawJob(j)
	if j.status == jobRunning {
		return c.fail(http.StatusBadRequest, "a running task cannot be deleted")
	}
	if j.status != jobCancelled {
		p.jobs.remove(c.arg)
	}
	return jsonAnswer(object{})
}
