/* Written by Torsor: compares a robot description (URDF) with the joints of the robot @robot@, without ROS. Only the
 * joints directly in the element <robot> are read, not those in <ros2_control>, <transmission> and others. */
#ifndef @guard@_DESCRIPTION_HPP
#define @guard@_DESCRIPTION_HPP

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "@package@/@package@_kernels.hpp"

namespace @package@ {

struct DescribedJoint {
    std::string name, type, parent, child;
};

/* Returns the attributes of a start tag without its brackets. */
inline std::map<std::string, std::string> attributes(const std::string &tag)
{
    std::map<std::string, std::string> found;
    for (std::size_t at = tag.find('='); at != std::string::npos; at = tag.find('=', at)) {
        const std::size_t end = tag.find_last_not_of(" \t\r\n", at - 1);
        const std::size_t begin = tag.find_last_of(" \t\r\n", end);
        const std::size_t open = tag.find_first_of("\"'", at);
        const std::size_t close = open == std::string::npos ? open : tag.find(tag[open], open + 1);
        if (end == std::string::npos || begin == std::string::npos || close == std::string::npos) break;
        found[tag.substr(begin + 1, end - begin)] = tag.substr(open + 1, close - open - 1);
        at = close + 1;
    }
    return found;
}

/* Returns the end of the markup that begins with '<' at a position: a comment, CDATA, or a tag with quoted values. */
inline std::size_t markup_end(const std::string &text, std::size_t at)
{
    const std::pair<const char *, const char *> kinds[] = {{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}};
    for (const auto &[begin, end] : kinds) {
        if (text.compare(at, std::string(begin).size(), begin) == 0) {
            const std::size_t found = text.find(end, at);
            return found == std::string::npos ? found : found + std::string(end).size();
        }
    }
    char quote = 0;
    for (std::size_t k = at; k < text.size(); ++k) {
        if (quote != 0) {
            quote = text[k] == quote ? '\0' : quote;
        } else if (text[k] == '"' || text[k] == '\'') {
            quote = text[k];
        } else if (text[k] == '>') {
            return k + 1;
        }
    }
    return std::string::npos;
}

/* Returns the joints of a URDF, in the order of the file. */
inline std::vector<DescribedJoint> described_joints(const std::string &urdf)
{
    std::vector<DescribedJoint> joints;
    std::vector<std::string> path;
    for (std::size_t at = urdf.find('<'); at != std::string::npos;) {
        const std::size_t end = markup_end(urdf, at);
        if (end == std::string::npos) break;
        const std::string tag = urdf.substr(at + 1, end - at - 2);
        at = urdf.find('<', end);
        if (tag.empty() || tag[0] == '!' || tag[0] == '?') continue;
        if (tag[0] == '/') {
            if (!path.empty()) path.pop_back();
            continue;
        }
        const std::string name = tag.substr(0, tag.find_first_of(" \t\r\n/"));
        auto given = attributes(tag);
        if (path.size() == 1 && path[0] == "robot" && name == "joint") {
            joints.push_back({given["name"], given["type"], "", ""});
        } else if (path.size() == 2 && path[0] == "robot" && path[1] == "joint" && name == "parent") {
            joints.back().parent = given["link"];
        } else if (path.size() == 2 && path[0] == "robot" && path[1] == "joint" && name == "child") {
            joints.back().child = given["link"];
        }
        if (tag.back() != '/') path.push_back(name);
    }
    return joints;
}

/* Returns the difference between the moving joints of a description and those of the model, or an empty string. Names,
 * types and the preceding joints are compared, so that vectors in model order belong to the same robot. `ignored` must
 * name the joints that are fixed in the model. */
inline std::string description_fault(const std::string &urdf, const std::vector<std::string> &ignored)
{
    namespace robot = @package@_kernels::robot;
    const std::string where = "the robot description does not match " + std::string(robot::name) + ": ";
    if (urdf.empty()) return "there is no robot description of " + std::string(robot::name);
    const std::vector<DescribedJoint> joints = described_joints(urdf);
    const auto is_held = [&ignored](const DescribedJoint &joint) {
        return joint.type == "fixed" || std::find(ignored.begin(), ignored.end(), joint.name) != ignored.end();
    };
    for (const DescribedJoint &joint : joints) {
        const auto same = [&joint](const char *name) { return joint.name == name; };
        const bool is_known = std::any_of(robot::coordinates.begin(), robot::coordinates.end(), same);
        if (!is_known && !is_held(joint)) {
            return where + "its joint '" + joint.name + "' moves, but the model has no such joint; add it to " +
                   "ignored_joints if it is fixed";
        }
    }
    for (std::size_t k = 0; k < robot::coordinates.size(); ++k) {
        const std::string name = robot::coordinates[k];
        const auto named = [&name](const DescribedJoint &joint) { return joint.name == name; };
        const auto found = std::find_if(joints.begin(), joints.end(), named);
        if (found == joints.end() || is_held(*found)) return where + "there is no moving joint '" + name + "'";
        const bool slides = std::string(robot::coordinate_units[k]) == "m";
        const bool turns = found->type == "revolute" || found->type == "continuous";
        if (slides ? found->type != "prismatic" : !turns) {
            return where + "its joint '" + name + "' is " + found->type + ", but in the model it is " +
                   (slides ? "prismatic" : "revolute");
        }
        std::string before, link = found->parent;  // the preceding moving joint towards the base
        for (std::size_t steps = 0; steps < joints.size() && before.empty(); ++steps) {
            const auto moves = [&link](const DescribedJoint &joint) { return joint.child == link; };
            const auto above = std::find_if(joints.begin(), joints.end(), moves);
            if (above == joints.end()) break;
            if (!is_held(*above)) before = above->name;
            link = above->parent;
        }
        const int parent = robot::parents[k];
        const std::string wanted = parent < 0 ? "" : robot::coordinates[static_cast<std::size_t>(parent)];
        if (before != wanted) {
            const auto shown = [](const std::string &joint) { return joint.empty() ? "the base" : "'" + joint + "'"; };
            return where + "its joint '" + name + "' follows " + shown(before) + ", but in the model it follows " +
                   shown(wanted);
        }
    }
    return "";
}

}  // namespace @package@

#endif
